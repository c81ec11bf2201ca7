package profile

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// source is a sensor with its readings.
type source struct {
	Sensor
	readings []Reading
}

// stretch that a reading is the mean of, in seconds since from.
func (s *source) stretch(r Reading, from time.Duration) (a, b float64) {
	end := r.At - s.Delay - from
	if r.Sensor == Counter {
		return (r.Since - s.Delay - from).Seconds(), end.Seconds()
	}
	return (end - s.Window).Seconds(), end.Seconds()
}

// windows that sensors are taken to have, where nothing else is known.
var windows = map[string]time.Duration{
	Instant: 25 * time.Millisecond, Buffer: 20 * time.Millisecond, Average: time.Second,
}

// gather sorts readings by sensor, and numbers the runs.
func (s *stitching) gather(readings []Reading) {
	const longest = 4 // median stretches of the counter, beyond which one says little
	by := map[string]*source{}
	var powers []float64
	for _, r := range readings {
		if r.At < s.opt.From || math.IsNaN(r.Watts) || math.IsInf(r.Watts, 0) {
			continue
		}
		src, ok := by[r.Sensor]
		if !ok {
			src = &source{Sensor: Sensor{Name: r.Sensor, Window: cmp.Or(windows[r.Sensor], windows[Instant]), Gain: 1, Used: true}}
			for _, known := range s.opt.Sensors {
				if known.Name == r.Sensor {
					src.Window, src.Delay = cmp.Or(known.Window, src.Window), known.Delay
				}
			}
			by[r.Sensor] = src
			s.sources = append(s.sources, src)
		}
		src.readings = append(src.readings, r)
		powers = append(powers, math.Abs(r.Watts))
		if _, ok := s.number[r.Run]; !ok {
			s.number[r.Run] = s.runs
			s.runs++
		}
	}
	if counter, ok := by[Counter]; ok {
		var lengths []float64
		for _, r := range counter.readings {
			lengths = append(lengths, (r.At - r.Since).Seconds())
		}
		counter.Window = seconds(stats.Median(lengths))
		counter.readings = slices.DeleteFunc(counter.readings, func(r Reading) bool {
			return r.At <= r.Since || r.At-r.Since > longest*counter.Window
		})
	}
	for _, src := range s.sources {
		src.Readings = len(src.readings)
	}
	slices.SortFunc(s.sources, func(a, b *source) int {
		first := func(s *source) int {
			if s.Name == Counter {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.Window, b.Window), cmp.Compare(a.Name, b.Name))
	})
	if len(powers) > 0 {
		s.floor = max(1e-9, 1e-5*stats.Median(powers))
	}
}

// enough readings to judge a sensor by.
const enough = 8

// rank puts the sensor first that all others are held against: the energy counter if it has enough readings,
// or the one of the shortest window that has, or else the one that has most.
func (s *stitching) rank() {
	slices.SortStableFunc(s.sources, func(a, b *source) int { return cmp.Compare(s.count(b), s.count(a)) })
}

// count the source's readings within the curve, up to enough.
func (s *stitching) count(src *source) (n int) {
	for _, r := range src.readings {
		if n < enough && s.within(src.stretch(r, s.from)) {
			n++
		}
	}
	return n
}

// idle says whether the card had nothing to do all through a stretch: before the first break, and after the
// last where there are several.
func (s *stitching) idle(a, b float64) bool {
	n := len(s.breaks)
	return n > 0 && b <= s.breaks[0] || n > 1 && a >= s.breaks[n-1]
}

// spanOf a run's stretch, with what the run draws over the curve.
func (s *stitching) spanOf(run int, a, b float64, lag time.Duration) span {
	sp := s.cells.spanOf(a, b, lag.Seconds())
	s.pacing.weigh(sp, s.number[run])
	return sp
}

// rows of the sources' readings that lie within the curve.
func (s *stitching) rows(sources []*source) (rows []row) {
	for k, src := range sources {
		for _, r := range src.readings {
			a, b := src.stretch(r, s.from)
			if s.within(a, b) {
				rows = append(rows, row{
					span: s.spanOf(r.Run, a, b, src.Lag), watts: r.Watts / src.Gain, run: s.number[r.Run], sensor: k, idle: s.idle(a, b), sigma: 1, weight: 1,
				})
			}
		}
	}
	return rows
}
