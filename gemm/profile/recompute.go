package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Recompute computes all profiles of a result again from the readings that [Options].Readings kept. It needs no card
// and uses the options Step, Resolution, Tolerance, Resamples, Seed, Readings and Command. It returns an error if the
// result has no readings, or has values that no card or sensor produces.
func Recompute(ctx context.Context, r *Result, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	if r == nil || len(r.Profiles) == 0 {
		return errors.New("the result contains no profile")
	}
	const slowest = 10 * Seconds(time.Second)
	for _, s := range testedSensors(r.SelfTest) {
		if s.Window <= 0 || s.Window > slowest {
			return fmt.Errorf("self-test: %s averages over %v: expected more than 0 s and at most %v", s.Name, s.Window, slowest)
		}
	}
	for _, p := range r.Products {
		if m := p.Advised.Margin; !(m >= 0 && m < 1) {
			return fmt.Errorf("product %s: binning margin %v: expected 0 to 1", p.Name, m)
		}
	}
	for i := range r.Profiles {
		if err := r.Profiles[i].load(len(r.Products)); err != nil {
			return fmt.Errorf("profile %d: %w", i+1, err)
		}
	}
	for i := range r.Profiles {
		p := &r.Profiles[i]
		p.usual, p.readings = p.mean.atEvenSpeed(p.Segments), p.Readings
		var err error
		if p.Trace, p.Sensors, err = stitch.Readings(ctx, p.readings, p.stitchOptions(o, r.SelfTest)); err != nil {
			return fmt.Errorf("profile %d: %w", i+1, err)
		}
		p.evaluate(r.Products, o)
		if !o.Readings {
			p.Readings, p.Timelines = nil, nil
		}
	}
	r.Interleaved = nil
	r.interleave()
	r.Seed, r.Recomputed = o.Seed, o.Command
	return nil
}

// longestRun is the longest work of a run. Options.Validate allows two thirds of it for the first product, and the
// second product takes half as long as the first.
const longestRun = 3 * Seconds(time.Minute)

// load checks that a profile from a file is complete and physically possible, and restores its timelines.
func (p *Profile) load(products int) error {
	if len(p.Readings) == 0 || len(p.Timelines) == 0 || len(p.Segments) == 0 {
		return errors.New("the profile contains no readings: measure again with profile --json --readings")
	}
	const (
		most     = 1e9 // executions
		rounding = ms
	)
	if len(p.Segments) > 2 {
		return fmt.Errorf("%d segments: expected one or two", len(p.Segments))
	}
	all := 0
	for _, s := range p.Segments {
		if s.Product < 0 || s.Product >= products || s.Executions <= 0 || s.End <= s.Begin {
			return fmt.Errorf("a segment with product %d, %d executions and the time %v to %v is not valid for a result of %s", s.Product, s.Executions, s.Begin, s.End, plural(products, "product"))
		}
		if s.Executions > most {
			return fmt.Errorf("%d executions: expected at most %d", s.Executions, int(most))
		}
		all += s.Executions
	}
	if err := p.checkTimelines(all); err != nil {
		return err
	}
	p.setTimelines(p.Timelines)
	done, begin := 0, Seconds(0)
	for i, s := range p.Segments {
		done += s.Executions
		if end := p.mean.moment(done); s.Begin != begin || (s.End-end).Abs() > rounding {
			return fmt.Errorf("segment %d is listed from %v to %v, but the mean run executes it from %v to %v", i+1, s.Begin, s.End, begin, end)
		}
		begin = s.End
	}
	return p.checkReadings()
}

// checkTimelines checks that every run's timeline covers all executions and has the same entries in Done.
func (p *Profile) checkTimelines(all int) error {
	const day = 24 * Seconds(time.Hour) // limit for all runs together
	var done []int
	total := Seconds(0)
	for _, run := range slices.Sorted(maps.Keys(p.Timelines)) {
		t := p.Timelines[run]
		n := len(t.Done)
		if n < 2 || n != len(t.At) || t.Done[0] != 0 || t.At[0] != 0 || t.Done[n-1] != all ||
			!slices.IsSorted(t.Done) || !slices.IsSorted(t.At) || t.At[n-1] <= 0 {
			return fmt.Errorf("run %d: its timeline does not go from 0 to %d executions", run, all)
		}
		if t.At[n-1] > longestRun {
			return fmt.Errorf("run %d works for %v: expected at most %v", run, t.At[n-1], longestRun)
		}
		if total += t.At[n-1] + 2*Seconds(margin); total > day {
			return fmt.Errorf("%d runs take more than a day", len(p.Timelines))
		}
		if done == nil {
			done = t.Done
		}
		if !slices.Equal(done, t.Done) {
			return fmt.Errorf("run %d: its timeline has other execution counts than the runs before it", run)
		}
	}
	return nil
}

// checkReadings checks that the readings are physically possible.
func (p *Profile) checkReadings() error {
	const (
		highest  = 1e5                  // watts
		farthest = 2 * longestRun       // distance from the start of the work
		slowest  = Seconds(time.Second) // limit for the median step of the energy counter; a missed step doubles the time between two steps
	)
	var steps, works []float64
	for i, r := range p.Readings {
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("reading %d (run %d, %s): %s", i+1, r.Run, r.Sensor, fmt.Sprintf(format, args...))
		}
		if _, ok := p.Timelines[r.Run]; !ok {
			return wrong("the run has no timeline")
		}
		if !slices.Contains([]string{stitch.Counter, stitch.Instant, stitch.Average, stitch.Buffer}, r.Sensor) {
			return wrong("unknown sensor")
		}
		if !(r.Watts >= 0 && r.Watts <= highest) {
			return wrong("%v W: expected 0 to %.0f W", r.Watts, highest)
		}
		if r.At.Abs() > farthest {
			return wrong("%v from the work's start: expected at most %v", r.At, farthest)
		}
		if r.Sensor == stitch.Counter {
			if r.Since > r.At || r.Since < -farthest {
				return wrong("impossible averaging time from %v to %v", r.Since, r.At)
			}
			steps = append(steps, (r.At - r.Since).Seconds())
		} else if r.Since != 0 {
			return wrong("since_seconds is given: only the energy counter averages over a known time")
		}
		if r.At > 0 {
			works = append(works, r.Watts)
		}
	}
	if len(works) > 0 && stats.Median(works) < 1 {
		return errors.New("the median power after the start of the work is below 1 W")
	}
	if len(steps) > 0 && stats.Median(steps) > slowest.Seconds() {
		return fmt.Errorf("the energy counter steps every %v: expected at most %v", stitch.Of(stats.Median(steps)), slowest)
	}
	return nil
}
