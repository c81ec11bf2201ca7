package stitch

import (
	"context"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// The card's time stamps give the end of the work. Power falls there faster than any sensor can show. The readings
// around the end of the work are therefore a sensor's step response.

// stepResponse models a sensor's readings around the end of the work. Power drops from before to after, in watts. The
// sensor shows the mean over a window behind a first-order filter, with a delay. Times are in seconds.
type stepResponse struct {
	window, timeConstant, delay float64
	before, after               float64
}

// at returns the reading t seconds after the end of the work.
func (f stepResponse) at(t float64) float64 {
	t -= f.delay
	return f.before + (f.after-f.before)*(1-weightBefore(0, t-f.window, t, f.timeConstant))
}

// sample is a reading of a run, t seconds after the end of the work.
type sample struct {
	t, watts float64
	run      int
}

// ending holds the readings of a sensor around the end of the work.
type ending struct {
	*sensor
	near          []sample
	before, after []float64 // watts: the last reading of each run under load, and all readings of the idle card
}

// Times relative to the end of the work, in seconds.
const (
	justBefore = 0.005 // before the end of the work; power hardly changes in this time
	settled    = 0.1   // after the end of the work; every fast sensor then reads idle power
	endingEnd  = 0.15  // after the end of the work; the readings up to here are fitted
)

// ending collects a sensor's readings around the end of the work.
func (s *stitcher) ending(sen *sensor) ending {
	e, last := ending{sensor: sen}, map[int]Reading{}
	start, end := s.breaks[0], s.breaks[len(s.breaks)-1]
	for _, r := range sen.readings {
		at := (r.At - s.from).Seconds()
		t := at - end
		if t > -justBefore && t < endingEnd {
			e.near = append(e.near, sample{t, r.Watts, s.number[r.Run]})
		}
		if t > settled && t < endingEnd {
			e.after = append(e.after, r.Watts)
		}
		if l, ok := last[r.Run]; at > start && t < 0 && (!ok || r.At > l.At) {
			last[r.Run] = r
		}
	}
	for _, r := range last { // a sensor may have no new reading while power is constant
		e.before = append(e.before, r.Watts)
	}
	return e
}

// fitTimeConstant fits the step response of the sensor with the most readings around the end of the work. If this
// sensor shows a filter, all sensors are assumed to have that filter, and the sensor becomes the reference.
// fitTimeConstant returns whether it found a filter. Power that decays slowly looks like a filter; see
// counterRunsAhead.
func (s *stitcher) fitTimeConstant(ctx context.Context) bool {
	const (
		fewest      = 16    // least number of readings around the end of the work
		least       = 0.003 // in seconds; a shorter time constant has no measurable effect
		significant = 6
	)
	if len(s.breaks) < 2 {
		return false
	}
	var e ending
	for _, sen := range s.sensors {
		if sen.Name == Counter || sen.Window > Of(endingEnd) {
			continue
		}
		if other := s.ending(sen); len(other.near) > len(e.near) {
			e = other
		}
	}
	if len(e.near) < fewest || len(e.before) == 0 || len(e.after) == 0 {
		return false
	}
	first := stepResponse{window: e.Window.Seconds(), before: stats.Median(e.before), after: stats.Median(e.after)}
	best, without := first.fit(ctx, e.near, once, false)
	off := without
	for _, timeConstant := range []float64{0.005, 0.01, 0.02, 0.04} {
		for _, window := range []float64{0, 0.01, 0.025} {
			f := first
			f.window, f.timeConstant = window, timeConstant
			if f, l := f.fit(ctx, e.near, once, true); l < off {
				best, off = f, l
			}
		}
	}
	if best.timeConstant < least || without-off < significant*off/float64(len(e.near)) {
		return false
	}
	s.filter = &filter{ending: e, stepResponse: best}
	e.Window, e.Delay = Of(best.window), Of(best.delay)
	for _, sen := range s.sensors {
		sen.TimeConstant = Of(best.timeConstant)
	}
	i := slices.Index(s.sensors, e.sensor)
	copy(s.sensors[1:i+1], s.sensors[:i])
	s.sensors[0] = e.sensor
	return true
}

// filter is the filter that all sensors share, fitted on the reference sensor.
type filter struct {
	ending
	stepResponse
}

// redrawn returns the sensors with the filter fitted to the drawn runs alone. Each sensor keeps its total lag behind
// the reference.
func (f *filter) redrawn(ctx context.Context, sensors []*sensor, times func(run int) float64) []*sensor {
	drawn, _ := f.fit(ctx, f.near, times, true)
	lag := func(r stepResponse) Seconds { return Of(r.window/2 + r.delay + r.timeConstant) }
	later, slower := lag(drawn)-lag(f.stepResponse), Of(drawn.timeConstant-f.timeConstant)
	all := make([]*sensor, len(sensors))
	for i, sen := range sensors {
		other := *sen
		if other.TimeConstant += slower; sen == f.sensor {
			other.Window, other.Delay = Of(drawn.window), Of(drawn.delay)
		} else {
			other.Delay += later - slower
		}
		all[i] = &other
	}
	return all
}

// counterRunsAhead reports whether the energy counter, with the filter assumed, would precede the card's power. In that
// case power itself decays slowly after the work, and there is no filter.
func (s *stitcher) counterRunsAhead() bool {
	const ahead = -3 * ms
	counter := s.counter()
	return counter != nil && counter.Delay < ahead
}

// fit returns the step response with the least absolute residuals near f, and the sum of the residuals. A sample has
// the weight of its run. The time constant is fitted only if filtered is true.
func (f stepResponse) fit(ctx context.Context, near []sample, times func(run int) float64, filtered bool) (stepResponse, float64) {
	const earlier = 0.001 // in seconds: the possible error of time stamps; no sensor can precede the card's power
	loss := func(f stepResponse) float64 {
		if f.window < 0 || f.timeConstant < 0 || f.delay < -earlier {
			return math.Inf(1)
		}
		total := 0.0
		for _, m := range near {
			if n := times(m.run); n > 0 {
				total += n * math.Abs(m.watts-f.at(m.t))
			}
		}
		return total
	}
	watts := 20 * wattScale(f.after-f.before)
	moves := []move[stepResponse]{
		func(f *stepResponse, step float64) { f.before += watts * step },
		func(f *stepResponse, step float64) { f.after += watts * step },
		func(f *stepResponse, step float64) { f.delay += 0.005 * step },
		// These moves keep the middle of the response unchanged.
		func(f *stepResponse, step float64) { f.window, f.delay = f.window+0.01*step, f.delay-0.005*step },
	}
	if filtered {
		moves = append(moves,
			func(f *stepResponse, step float64) {
				f.timeConstant, f.delay = f.timeConstant+0.005*step, f.delay-0.005*step
			},
			func(f *stepResponse, step float64) {
				f.timeConstant, f.window = f.timeConstant+0.005*step, f.window-0.01*step
			},
			func(f *stepResponse, step float64) { f.timeConstant += 0.005 * step })
	}
	return patternSearch(ctx, f, 0.005, loss, moves...)
}
