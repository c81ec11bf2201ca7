package stitch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Reading is one reading of a sensor: the mean power over an interval of a run. Times are relative to the start of the
// run's work, by the host's clock.
type Reading struct {
	Run    int     `json:"run"`
	Sensor string  `json:"sensor"` // Counter, Instant, Average or Buffer
	Watts  float64 `json:"watts"`
	At     Seconds `json:"at_seconds"` // end of the interval
	// Since is the start of the interval if it is known. For the energy counter it is the previous step. For other
	// sensors the interval is the sensor's window before At; see [Sensor].
	Since Seconds `json:"since_seconds,omitzero"`
}

// Names of the sensors.
const (
	Counter = "energy counter"
	Instant = "instant power"
	Average = "average power"
	Buffer  = "driver's buffer"
)

// Sensor is the fitted response of a sensor. Power passes a first-order low-pass filter with TimeConstant. A reading at
// t is the mean of the filtered power from t−Delay−Window to t−Delay.
type Sensor struct {
	Name     string `json:"name"`
	Readings int    `json:"readings"`
	// Gain is the sensor's scale relative to the energy counter, or relative to the reference sensor where there
	// is no energy counter.
	Gain float64 `json:"gain"`
	// Error is the standard deviation of one reading about the trace, in watts.
	Error float64 `json:"error_watts"`
	// Used is false if the sensor's readings add no information or contradict other sensors. Why then has the reason.
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
	// Window is the averaging window. The energy counter has a different window for every reading; Window is then the
	// median.
	Window Seconds `json:"window_seconds"`
	Delay  Seconds `json:"delay_seconds"`
	// TimeConstant is the time constant τ of the filter that all sensors share. Its step response is 1−exp(−t/τ).
	TimeConstant Seconds `json:"lag_seconds"`
}

// sensor is a sensor with its readings.
type sensor struct {
	Sensor
	readings []Reading
}

// stretch returns the ends of the interval that a reading averages over, in seconds since from.
func (s *sensor) stretch(r Reading, from Seconds) (a, b float64) {
	end := r.At - s.Delay - from
	if r.Sensor == Counter {
		return (r.Since - s.Delay - from).Seconds(), end.Seconds()
	}
	return (end - s.Window).Seconds(), end.Seconds()
}

// usualWindows are the initial averaging windows of the sensors.
var usualWindows = map[string]Seconds{Instant: 25 * ms, Buffer: 20 * ms, Average: Seconds(time.Second)}

// gather groups the readings by sensor and numbers the runs from 0.
func (s *stitcher) gather(readings []Reading) {
	const longest = 4 // in median intervals of the counter; longer intervals carry little information
	by := map[string]*sensor{}
	var powers []float64
	for _, r := range readings {
		if r.At < s.opt.From || math.IsNaN(r.Watts) || math.IsInf(r.Watts, 0) {
			continue
		}
		sen, ok := by[r.Sensor]
		if !ok {
			sen = &sensor{Sensor: Sensor{Name: r.Sensor, Window: cmp.Or(usualWindows[r.Sensor], usualWindows[Instant]), Gain: 1, Used: true}}
			for _, known := range s.opt.Sensors {
				if known.Name == r.Sensor {
					sen.Window, sen.Delay = cmp.Or(known.Window, sen.Window), known.Delay
				}
			}
			by[r.Sensor] = sen
			s.sensors = append(s.sensors, sen)
		}
		sen.readings = append(sen.readings, r)
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
		counter.Window = Of(stats.Median(lengths))
		counter.readings = slices.DeleteFunc(counter.readings, func(r Reading) bool {
			return r.At <= r.Since || r.At-r.Since > longest*counter.Window
		})
	}
	for _, sen := range s.sensors {
		sen.Readings = len(sen.readings)
	}
	slices.SortFunc(s.sensors, func(a, b *sensor) int {
		first := func(s *sensor) int {
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

// minReadings is the smallest number of readings for a fit of a sensor's response.
const minReadings = 8

// chooseReference moves the reference sensor to the front. The reference is the energy counter if it has at least
// minReadings readings, else the sensor with the shortest window that has as many, else the sensor with the most
// readings.
func (s *stitcher) chooseReference() {
	slices.SortStableFunc(s.sensors, func(a, b *sensor) int { return cmp.Compare(s.count(b), s.count(a)) })
}

// count returns the number of the sensor's readings within the trace, at most minReadings.
func (s *stitcher) count(sen *sensor) (n int) {
	for _, r := range sen.readings {
		if n < minReadings && s.within(sen.stretch(r, s.from)) {
			n++
		}
	}
	return n
}

// counter returns the energy counter, or nil if it has fewer than minReadings readings.
func (s *stitcher) counter() *sensor {
	for _, sen := range s.sensors {
		if sen.Name == Counter && s.count(sen) == minReadings {
			return sen
		}
	}
	return nil
}

// idle reports whether the card had no work between a and b: before the first break, or after the last break if there
// are several.
func (s *stitcher) idle(a, b float64) bool {
	n := len(s.breaks)
	return n > 0 && b <= s.breaks[0] || n > 1 && a >= s.breaks[n-1]
}

// spanOf returns the averaging interval from a to b of a run as weights of cells, scaled by the run's power relative to
// the trace.
func (s *stitcher) spanOf(run int, a, b float64, timeConstant Seconds) span {
	sp := s.cells.spanOf(a, b, timeConstant.Seconds())
	s.speeds.scale(sp, s.number[run])
	return sp
}

// rows returns one equation for each reading that lies within the trace.
func (s *stitcher) rows(sensors []*sensor) (rows []row) {
	for k, sen := range sensors {
		for _, r := range sen.readings {
			a, b := sen.stretch(r, s.from)
			if s.within(a, b) {
				rows = append(rows, row{
					span: s.spanOf(r.Run, a, b, sen.TimeConstant), watts: r.Watts / sen.Gain, run: s.number[r.Run], sensor: k, idle: s.idle(a, b), sigma: 1, weight: 1,
				})
			}
		}
	}
	return rows
}
