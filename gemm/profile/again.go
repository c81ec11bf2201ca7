package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Again makes all profiles of a result anew from the readings in it, which Options.Readings put there, and needs no
// card. Of the options Step, Resolution, Tolerance, Resamples, Seed, Readings and Command count. It refuses what no
// card and no sensor does.
func Again(ctx context.Context, r *Result, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	if len(r.Profiles) == 0 {
		return errors.New("there is no profile in it")
	}
	const slowest = 10 * time.Second
	for _, s := range priors(r.SelfTest) {
		if s.Window <= 0 || s.Window > slowest {
			return fmt.Errorf("self-test: %s averages over %v: want more than 0s and at most %v", s.Name, s.Window, slowest)
		}
	}
	for _, p := range r.Products {
		if m := p.Advised.Margin; !(m >= 0 && m < 1) {
			return fmt.Errorf("product %s: a margin of %v: want 0 to 1", p.Name, m)
		}
	}
	for i := range r.Profiles {
		if err := r.Profiles[i].whole(len(r.Products)); err != nil {
			return fmt.Errorf("profile %d: %w", i+1, err)
		}
	}
	for i := range r.Profiles {
		p := &r.Profiles[i]
		p.usual, p.readings = evenly(p.progress, p.Legs), p.Readings
		var err error
		if p.Curve, p.Sensors, err = Stitch(ctx, p.readings, p.stitchOptions(o, r.SelfTest)); err != nil {
			return fmt.Errorf("profile %d: %w", i+1, err)
		}
		p.conclude(r.Products, o)
		if !o.Readings {
			p.Readings, p.Paces = nil, nil
		}
	}
	r.After = nil
	r.after()
	r.Seed, r.Again = o.Seed, o.Command
	return nil
}

// atMost a run's work lasts: Options.Validate asks for half of it, the second product's included.
const atMost = 3 * time.Minute

// whole says whether a profile from elsewhere holds what it takes, and nothing that no card does.
func (p *Profile) whole(products int) error {
	if len(p.Readings) == 0 || len(p.Paces) == 0 || len(p.Legs) == 0 {
		return errors.New("there are no readings in it: profile --json --readings writes them")
	}
	const (
		most     = 1e9 // executions
		rounding = time.Millisecond
	)
	if len(p.Legs) > 2 {
		return fmt.Errorf("%d legs: want one or two", len(p.Legs))
	}
	all := 0
	for _, l := range p.Legs {
		if l.Product < 0 || l.Product >= products || l.Executions <= 0 || l.End <= l.Begin {
			return fmt.Errorf("leg %+v is none of %s", l, plural(products, "product"))
		}
		if l.Executions > most {
			return fmt.Errorf("%d executions: want at most %d", l.Executions, int(most))
		}
		all += l.Executions
	}
	if err := p.stamped(all); err != nil {
		return err
	}
	p.progressed(p.Paces)
	done, begin := 0, time.Duration(0)
	for i, l := range p.Legs {
		done += l.Executions
		if end := momentOf(p.progress, done); l.Begin != begin || (l.End-end).Abs() > rounding {
			return fmt.Errorf("leg %d goes from %v to %v: in the mean run it goes from %v to %v", i+1, l.Begin, l.End, begin, end)
		}
		begin = l.End
	}
	return p.possible()
}

// stamped says whether the runs' progress leads to all executions, in all runs by the same steps.
func (p *Profile) stamped(all int) error {
	const day = 24 * time.Hour // all runs together
	var done []int
	total := time.Duration(0)
	for _, run := range slices.Sorted(maps.Keys(p.Paces)) {
		progress := p.Paces[run]
		n := len(progress.Done)
		if n < 2 || n != len(progress.At) || progress.Done[0] != 0 || progress.At[0] != 0 || progress.Done[n-1] != all ||
			!slices.IsSorted(progress.Done) || !slices.IsSorted(progress.At) || progress.At[n-1] <= 0 {
			return fmt.Errorf("run %d: its progress does not lead from 0 to %d executions", run, all)
		}
		if progress.At[n-1] > atMost {
			return fmt.Errorf("run %d works for %v: want at most %v", run, progress.At[n-1], atMost)
		}
		if total += progress.At[n-1] + 2*lead; total > day {
			return fmt.Errorf("%d runs take more than a day", len(p.Paces))
		}
		if done == nil {
			done = progress.Done
		}
		if !slices.Equal(done, progress.Done) {
			return fmt.Errorf("run %d was not stamped as the others were", run)
		}
	}
	return nil
}

// possible says whether sensors can have said what the readings are.
func (p *Profile) possible() error {
	const (
		highest  = 1e5         // watts
		farthest = 2 * atMost  // from the work's start
		slowest  = time.Second // the energy counter, on the median: a step that was missed makes two of one
	)
	var steps, works []float64
	for i, r := range p.Readings {
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("reading %d, of run %d by the %s: %s", i+1, r.Run, r.Sensor, fmt.Sprintf(format, args...))
		}
		if _, ok := p.Paces[r.Run]; !ok {
			return wrong("there is no progress of that run")
		}
		if !slices.Contains([]string{Counter, Instant, Average, Buffer}, r.Sensor) {
			return wrong("there is no such sensor")
		}
		if !(r.Watts >= 0 && r.Watts <= highest) {
			return wrong("%v W: want 0 to %.0f W", r.Watts, highest)
		}
		if r.At.Abs() > farthest {
			return wrong("%v from the work's start: want at most %v", r.At, farthest)
		}
		if r.Sensor == Counter {
			if r.Since > r.At || r.Since < -farthest {
				return wrong("it is for the time from %v to %v", r.Since, r.At)
			}
			steps = append(steps, (r.At - r.Since).Seconds())
		}
		if r.At > 0 {
			works = append(works, r.Watts)
		}
	}
	if len(works) > 0 && stats.Median(works) < 1 {
		return errors.New("the readings are of less than 1 W")
	}
	if len(steps) > 0 && stats.Median(steps) > slowest.Seconds() {
		return fmt.Errorf("the energy counter steps every %v: want at most %v", seconds(stats.Median(steps)), slowest)
	}
	return nil
}
