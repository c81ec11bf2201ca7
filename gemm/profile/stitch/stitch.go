// Package stitch reconstructs the power trace of a run from overlapping readings of slow sensors.
//
// A sensor averages over tens of milliseconds or more. Runs that start at different phases of the sensors give
// thousands of overlapping readings. [Readings] fits one trace to all of them, together with the sensors' responses.
// This is a regularised deconvolution:
//
//  1. The sensors' windows, delays, gains and their common filter are fitted (sensors.go; window.go for one window
//     and delay, delay.go for the delay that all share, filter.go for the time constant), and so is the law by
//     which power follows the speed of each run (speed.go).
//  2. The trace is the weighted least-squares solution (fit.go, equations.go on cells.go) with a penalty on its
//     second differences, whose weight comes from cross-validation over runs (smoothness.go). Each reading is
//     weighted by its sensor's noise (noise.go).
//  3. The resolution matrix gives the trace's resolution, and coarse parts are fitted again (resolution.go).
//  4. A bootstrap over runs gives the intervals (bootstrap.go).
//
// The package contains nothing specific to a card. Its inputs are readings, its outputs a [Trace] and the fitted
// [Sensor] values.
package stitch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Options are the options of [Readings].
type Options struct {
	// From and To are the ends of the trace. The card must be idle from From to the first break. Readings whose
	// averaging interval extends beyond From or To are left out.
	From, To Seconds
	// Step is the length of a cell, at least a fiftieth of the shortest averaging window. Default 2.5 ms.
	Step Seconds
	// Breaks are the times at which power may jump: 0 (the start of the work), the changes between segments, and the
	// end of the work. The trace may jump at breaks only.
	Breaks []Seconds
	// Sensors are the initial windows and delays, by sensor name. Only the fields Name, Window and Delay are read.
	// Default windows: 25 ms for Instant, 20 ms for Buffer, 1 s for Average. Default delay: 0.
	Sensors []Sensor
	// Speed returns a run's speed between two moments, relative to the segment's mean speed. Default: unknown.
	Speed func(run int, from, to Seconds) float64
	// Resolution is the coarsest resolution that a cell of the work may have. A finer resolution makes the intervals
	// wider. The trace then has the same resolution everywhere. Default: 50 ms or finer, as the readings allow, and
	// finest where power changes. If the readings do not support Resolution, the default applies.
	Resolution Seconds
	// Seed is the seed of the bootstrap and of the folds of the cross-validation.
	Seed uint64
	// Resamples is the number of bootstrap resamples over runs, at least 2. Default 100.
	Resamples int
}

// ErrTooFew is the error for readings that do not suffice for a trace.
var ErrTooFew = errors.New("too few readings")

// CoarsestCell is the coarsest resolution of a cell of the work, if the readings support it.
const CoarsestCell = 50 * ms

// Readings fits one trace to all readings, and the response of every sensor.
//
// The trace minimises squared residuals plus a penalty on its second differences. Cross-validation over runs selects
// the heaviest penalty whose prediction of left-out runs is within one standard error of the best. A tenth of that
// penalty is used, or less if the resolution requires it. Readings are weighted by their sensor's noise. Outliers get
// lower weights (Huber weights).
//
// Errors: [ErrTooFew], or the context's error.
func Readings(ctx context.Context, readings []Reading, o Options) (*Trace, []Sensor, error) {
	s, err := newStitcher(ctx, readings, o)
	if err != nil {
		return nil, nil, err
	}
	start, err := s.fitSensors(ctx)
	if err != nil {
		return nil, nil, err
	}
	var used []*sensor
	for _, sen := range s.sensors {
		if sen.Used {
			used = append(used, sen)
		}
	}
	c, err := s.fit(ctx, used, start, start.growth)
	if err != nil {
		return nil, nil, err
	}
	trace, err := s.trace(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	// Where power is constant, the penalty could make the trace much coarser than the readings allow. The resolution of
	// a cell is therefore limited.
	const growth = 2
	if len(s.breaks) > 0 {
		met := false
		if o.Resolution > 0 {
			trace, met, err = s.limitResolution(ctx, c, trace, o.Resolution, 0)
		}
		if !met && err == nil {
			trace, _, err = s.limitResolution(ctx, c, trace, CoarsestCell, growth)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	s.sensorErrors(c)
	s.scaleToCounter(c, trace)
	var all []Sensor
	for _, sen := range s.sensors {
		all = append(all, sen.Sensor)
	}
	return trace, all, nil
}

// stitcher holds the readings, the options and the fitted values.
type stitcher struct {
	cells
	opt     Options
	from    Seconds
	breaks  []float64 // seconds since the option From
	sensors []*sensor // the reference is first
	runs    int
	number  map[int]int // number of each run, from 0
	floor   float64     // differences in watts below it are ignored
	speeds  *speeds
	filter  *filter // nil if no filter was found
}

func newStitcher(ctx context.Context, readings []Reading, o Options) (*stitcher, error) {
	const (
		step      = 2500 * us
		resamples = 100
	)
	if o.To <= o.From {
		return nil, fmt.Errorf("trace from %v to %v: the end must be later than the start", o.From, o.To)
	}
	o.Step, o.Resamples = cmp.Or(o.Step, step), cmp.Or(o.Resamples, resamples)
	s := &stitcher{opt: o, from: o.From, number: map[int]int{}}
	s.gather(readings)
	if len(s.sensors) == 0 {
		return nil, fmt.Errorf("%w: none lies between %v and %v (readings in all: %d)", ErrTooFew, o.From, o.To, len(readings))
	}
	if s.runs < 2 {
		return nil, fmt.Errorf("%w: the intervals of a trace need at least two runs", ErrTooFew)
	}
	s.cells = cells{step: o.Step.Seconds()}
	const fineness = 50
	shortest := slices.MinFunc(s.sensors, func(a, b *sensor) int { return cmp.Compare(a.Window, b.Window) }).Window
	s.step = max(s.step, shortest.Seconds()/fineness)
	s.n = int(math.Ceil((o.To-o.From).Seconds()/s.step - 1e-6))
	for _, b := range o.Breaks {
		s.breaks = append(s.breaks, (b - o.From).Seconds())
	}
	s.chooseReference()
	var err error
	s.speeds, err = s.readSpeeds(ctx)
	return s, err
}

// trace returns a solution's trace with its resolution and intervals.
func (s *stitcher) trace(ctx context.Context, c *solution) (*Trace, error) {
	t := &Trace{Start: s.opt.From, Step: Of(s.step), Watts: slices.Clone(c.watts), Law: s.speeds.found()}
	s.speeds.mean(t.Watts, once)
	if err := s.resolution(ctx, c, t); err != nil {
		return nil, err
	}
	return t, s.bootstrap(ctx, c, t)
}

// sensorErrors sets the standard deviation of each sensor's readings about the trace.
func (s *stitcher) sensorErrors(c *solution) {
	k := 0
	for _, sen := range s.sensors {
		if sen.Used {
			sen.Error = c.noise[k].watts
			k++
		} else {
			sen.Error = noiseOf(s.cells, s.rows([]*sensor{sen}), c.watts, 0, 0).watts
		}
	}
}

// scaleToCounter makes the energy counter the scale of the trace and of the gains, even if another sensor was the
// reference.
func (s *stitcher) scaleToCounter(c *solution, t *Trace) {
	counter := s.counter()
	if counter == nil {
		return
	}
	if !slices.Contains(c.sensors, counter) {
		counter.Gain *= s.counterScale(c)(c.watts, nil, once)
	}
	gain := counter.Gain
	for _, sen := range s.sensors {
		sen.Gain /= gain
	}
	for _, values := range append([][]float64{t.Watts, t.Low, t.High}, t.resamples...) {
		floats.Scale(gain, values)
	}
}
