package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Again makes all profiles of a result anew from the readings in it, which Options.Readings put there, and needs no
// card. Of the options Step, Resolution, Tolerance, Resamples, Seed, Readings and Command count.
func Again(ctx context.Context, r *Result, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	if len(r.Profiles) == 0 {
		return errors.New("there is no profile in it")
	}
	for i := range r.Profiles {
		p := &r.Profiles[i]
		if err := p.whole(len(r.Products)); err != nil {
			return fmt.Errorf("profile %d: %w", i+1, err)
		}
		p.progressed(p.Paces)
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

// whole says whether a profile from elsewhere holds what it takes.
func (p *Profile) whole(products int) error {
	if len(p.Readings) == 0 || len(p.Paces) == 0 || len(p.Legs) == 0 {
		return errors.New("there are no readings in it: profile --json --readings writes them")
	}
	all := 0
	for _, l := range p.Legs {
		if l.Product < 0 || l.Product >= products || l.Executions <= 0 || l.End <= l.Begin {
			return fmt.Errorf("leg %+v is none of %s", l, plural(products, "product"))
		}
		all += l.Executions
	}
	var done []int
	for run, progress := range p.Paces {
		n := len(progress.Done)
		if n < 2 || n != len(progress.At) || progress.Done[0] != 0 || progress.At[0] != 0 || progress.Done[n-1] != all ||
			!slices.IsSorted(progress.Done) || !slices.IsSorted(progress.At) || progress.At[n-1] <= 0 {
			return fmt.Errorf("run %d: its progress does not lead from 0 to %d executions", run, all)
		}
		if done == nil {
			done = progress.Done
		}
		if !slices.Equal(done, progress.Done) {
			return fmt.Errorf("run %d was not stamped as the others were", run)
		}
	}
	for _, r := range p.Readings {
		if _, ok := p.Paces[r.Run]; !ok {
			return fmt.Errorf("a reading of run %d, of which there is no progress", r.Run)
		}
	}
	return nil
}
