package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// StitchOptions say what to make of readings.
type StitchOptions struct {
	// From and To are the ends of the curve. The card is idle from From to the first break. Readings of
	// stretches that reach beyond either end are left out.
	From, To time.Duration
	// Step is the length of a cell; 0 is 2.5 ms. It becomes a fiftieth of the shortest stretch that any
	// sensor averages over where that is longer.
	Step time.Duration
	// Breaks are the moments at which power may jump, the first of them being the work's start: 0, the
	// changes between legs, the end of the work. The curve is smooth between them only.
	Breaks []time.Duration
	// Sensors are what is known beforehand of windows and delays, by name; the fields Name, Window and
	// Delay are read. Others begin with common values: 25 ms for Instant, 20 ms for Buffer, 1 s for
	// Average, no delay.
	Sensors []Sensor
	// Pace says how fast a run worked between two moments, over what is usual for what it worked at; nil: not known.
	Pace func(run int, from, to time.Duration) float64
	// Resolution that every cell of the work is to have, at the price of wider intervals; 0: 50 ms, and finer where
	// the readings say more. Where they do not carry it the curve is the one that 0 makes, which
	// is finest where power changes; with a resolution the curve is equally fine everywhere, and may be coarser there.
	Resolution time.Duration
	// Seed of the resamples and of the parting for cross-validation.
	Seed uint64
	// Resamples of the bootstrap over runs, two or more; 0 is 100.
	Resamples int
}

// ErrTooFew means that there are not enough readings for any curve.
var ErrTooFew = errors.New("too few readings")

// Stitch finds the curve of which all readings are means, and what the sensors did. Readings of many runs,
// each begun at another phase of the sensors, overlap so that the curve has a finer grain than any of them.
//
// It is the curve of least squares with a penalty on its second differences. The penalty is the heaviest with
// which runs that were left out are predicted as well as can be, to within a standard error (cross-validation). A
// tenth of it is used, or still less, as is needed for the resolution that every cell is to have. Readings are weighed by
// their sensor's error, and less where they lie far off. The sensors' windows and delays are found besides.
//
// It fails with ErrTooFew, or with the context's error.
func Stitch(ctx context.Context, readings []Reading, o StitchOptions) (*Curve, []Sensor, error) {
	s, err := newStitching(ctx, readings, o)
	if err != nil {
		return nil, nil, err
	}
	about, err := s.place(ctx)
	if err != nil {
		return nil, nil, err
	}
	var used []*source
	for _, src := range s.sources {
		if src.Used {
			used = append(used, src)
		}
	}
	c, err := s.fit(ctx, used, about, about.growth)
	if err != nil {
		return nil, nil, err
	}
	curve, err := s.curve(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	// A curve may be as coarse as it likes where power stays the same; but that says nothing of what the readings tell.
	const growth = 2
	if len(s.breaks) > 0 {
		held := false
		if o.Resolution > 0 {
			curve, held, err = s.hold(ctx, c, curve, o.Resolution, 0)
		}
		if !held && err == nil {
			curve, _, err = s.hold(ctx, c, curve, coarsest, growth)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	s.errors(c)
	s.anchor(curve)
	var all []Sensor
	for _, src := range s.sources {
		all = append(all, src.Sensor)
	}
	return curve, all, nil
}

// coarsest cell of the work, where the readings carry it.
const coarsest = 50 * time.Millisecond

// curve of a solution, with its resolution and intervals.
func (s *stitching) curve(ctx context.Context, c *solution) (*Curve, error) {
	curve := &Curve{Start: s.opt.From, Step: seconds(s.step), Watts: slices.Clone(c.watts), Law: s.pacing.found()}
	s.pacing.mean(curve.Watts, once)
	if err := s.resolution(ctx, c, curve); err != nil {
		return nil, err
	}
	return curve, s.bootstrap(ctx, c, curve)
}

// stitching is what the readings and the options say.
type stitching struct {
	cells
	opt     StitchOptions
	from    time.Duration
	breaks  []float64 // seconds since from
	sources []*source // first the one that the others are held against
	runs    int
	number  map[int]int // of each run, from 0
	floor   float64     // watts below which nothing is told apart
	pacing  *pacing
}

func newStitching(ctx context.Context, readings []Reading, o StitchOptions) (*stitching, error) {
	const (
		step      = 2500 * time.Microsecond
		resamples = 100
	)
	if o.To <= o.From {
		return nil, fmt.Errorf("a curve from %v to %v: its end must be later than its begin", o.From, o.To)
	}
	o.Step, o.Resamples = cmp.Or(o.Step, step), cmp.Or(o.Resamples, resamples)
	s := &stitching{opt: o, from: o.From, number: map[int]int{}}
	s.gather(readings)
	if len(s.sources) == 0 {
		return nil, fmt.Errorf("none of %d readings lies between %v and %v: %w", len(readings), o.From, o.To, ErrTooFew)
	}
	if s.runs < 2 {
		return nil, fmt.Errorf("%d run: how sure a curve is shows only in several: %w", s.runs, ErrTooFew)
	}
	s.cells = cells{step: o.Step.Seconds()}
	const fineness = 50
	shortest := slices.MinFunc(s.sources, func(a, b *source) int { return cmp.Compare(a.Window, b.Window) }).Window
	s.step = max(s.step, shortest.Seconds()/fineness)
	s.n = int(math.Ceil((o.To-o.From).Seconds()/s.step - 1e-6))
	for _, b := range o.Breaks {
		s.breaks = append(s.breaks, (b - o.From).Seconds())
	}
	s.rank()
	var err error
	s.pacing, err = s.paced(ctx)
	return s, err
}

// errors of the sensors, about a curve.
func (s *stitching) errors(c *solution) {
	k := 0
	for _, src := range s.sources {
		if src.Used {
			src.Error = c.noise[k].watts
			k++
		} else {
			src.Error = noiseOf(s.cells, s.rows([]*source{src}), c.watts, 0, 0).watts
		}
	}
}
