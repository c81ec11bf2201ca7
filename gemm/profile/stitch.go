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
	// Step is the length of a cell; 0 is 2.5 ms. It becomes a fortieth of the shortest stretch that any
	// sensor averages over where that is longer.
	Step time.Duration
	// Breaks are the moments at which power may jump, the first of them being the work's start: 0, the
	// changes between legs, the end of the work. The curve is smooth between them only.
	Breaks []time.Duration
	// Sensors are what is known beforehand of windows and delays, by name; the fields Name, Window and
	// Delay are read. Others begin with common values: 25 ms for Instant, 20 ms for Buffer, 1 s for
	// Average, no delay.
	Sensors []Sensor
	// Seed of the resamples and of the parting for cross-validation.
	Seed uint64
	// Resamples of the bootstrap over runs; 0 is 100.
	Resamples int
}

// ErrTooFew means that there are not enough readings for any curve.
var ErrTooFew = errors.New("too few readings")

// Stitch finds the curve of which all readings are means, and what the sensors did. Readings of many runs,
// each begun at another phase of the sensors, overlap so that the curve has a finer grain than any of them.
//
// It is the curve of least squares with a penalty on its second differences. The penalty's weight is the one
// with which runs that were left out are predicted best (cross-validation); readings are weighed by
// their sensor's error, and less where they lie far off. The sensors' windows and delays are found besides.
//
// It fails with ErrTooFew, or with the context's error.
func Stitch(ctx context.Context, readings []Reading, o StitchOptions) (*Curve, []Sensor, error) {
	s, err := newStitching(readings, o)
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
	curve := &Curve{Start: o.From, Step: seconds(s.step), Watts: c.watts}
	if err := s.resolution(ctx, c, curve); err != nil {
		return nil, nil, err
	}
	if err := s.bootstrap(ctx, c, curve); err != nil {
		return nil, nil, err
	}
	return curve, s.sensors(c), nil
}

// stitching is what the readings and the options say.
type stitching struct {
	cells
	opt     StitchOptions
	from    time.Duration
	breaks  []float64 // seconds since from
	sources []*source // the energy counter first, or else the shortest window
	runs    int
	number  map[int]int // of each run, from 0
	floor   float64     // watts below which nothing is told apart
}

// windows that sensors are taken to have, where nothing else is known.
var windows = map[string]time.Duration{
	Instant: 25 * time.Millisecond, Buffer: 20 * time.Millisecond, Average: time.Second,
}

func newStitching(readings []Reading, o StitchOptions) (*stitching, error) {
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
		return nil, fmt.Errorf("none of %d between %v and %v: %w", len(readings), o.From, o.To, ErrTooFew)
	}
	if s.runs < 2 {
		return nil, fmt.Errorf("%d run: how sure a curve is shows only in several: %w", s.runs, ErrTooFew)
	}
	s.cells = cells{step: o.Step.Seconds()}
	const fineness = 40
	shortest := slices.MinFunc(s.sources, func(a, b *source) int { return cmp.Compare(a.Window, b.Window) }).Window
	s.step = max(s.step, shortest.Seconds()/fineness)
	s.n = int(math.Ceil((o.To-o.From).Seconds()/s.step - 1e-6))
	for _, b := range o.Breaks {
		s.breaks = append(s.breaks, (b - o.From).Seconds())
	}
	return s, nil
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
		counter.Window = seconds(median(lengths))
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
		s.floor = max(1e-9, 1e-5*median(powers))
	}
}

// rows of the sources' readings that lie within the curve.
func (s *stitching) rows(sources []*source) (rows []row) {
	for k, src := range sources {
		for _, r := range src.readings {
			if sp, ok := s.span(src.stretch(r, s.from)); ok {
				rows = append(rows, row{span: sp, watts: r.Watts / src.Gain, run: s.number[r.Run], sensor: k, sigma: 1, weight: 1})
			}
		}
	}
	return rows
}

// solution is a curve and how it was found.
type solution struct {
	watts []float64
	smoothness
	lambda float64
	bend   *normal
	rows   []row
	noise  []noise // of each source
}

// assumed is where the search for the smoothness begins.
var assumed = smoothness{growth: 4}

// growths of the penalty that are tried: see roughness.
var growths = []float64{4, 2, 0}

// fit finds the curve of some sources, and by turns what each reading weighs and, where growths are to be
// tried, the smoothness.
func (s *stitching) fit(ctx context.Context, sources []*source, about smoothness, try ...float64) (*solution, error) {
	const rounds = 3
	c := &solution{rows: s.rows(sources), smoothness: about}
	if err := s.solve(c); err != nil {
		return nil, err
	}
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.noise = reweigh(s.cells, c.rows, c.watts, len(sources), s.floor)
		level := levels(c.rows, c.watts, len(sources), once)
		for k, src := range sources {
			src.Gain *= level[k]
		}
		divide(c.rows, level)
		if len(try) > 0 && round != 1 {
			var err error
			v := newCrossValidation(s.cells, s.breaks, c.rows, s.runs, s.opt.Seed)
			if c.smoothness, err = v.best(ctx, try, c.order); err != nil {
				return nil, err
			}
			try = []float64{c.growth}
		}
		if err := s.solve(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// finer is by how many orders of magnitude the penalty weighs less than what predicts best. What smoothing
// takes from a curve no bootstrap shows, so intervals are true only where it takes little; for that the
// curve is twice as rough as it might be, and four times as fine.
const finer = 2.5

// solve finds the curve that its rows' weights and its smoothness make.
func (s *stitching) solve(c *solution) error {
	sys := assemble(s.cells, c.rows, once)
	c.lambda = sys.scale() * math.Pow(10, c.order-finer)
	c.bend = roughness(s.cells, s.breaks, c.growth)
	p, ok := sys.solve(c.bend, c.lambda)
	if !ok {
		return fmt.Errorf("no curve fits %d: %w", len(c.rows), ErrTooFew)
	}
	c.watts = p
	return nil
}

// sensors as they were found, the used ones first.
func (s *stitching) sensors(c *solution) (all []Sensor) {
	k := 0
	for _, src := range s.sources {
		if src.Used {
			src.Error = c.noise[k].watts
			k++
		} else {
			src.Error = noiseOf(s.cells, s.rows([]*source{src}), c.watts, running(c.watts), 0, 0).watts
		}
		all = append(all, src.Sensor)
	}
	return all
}
