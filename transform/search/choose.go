package search

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
)

// choice is one way to treat a layer, with what is known of it.
type choice struct {
	steps  []*plan.Step
	energy cost.Estimate // from the sample
	snr    float64       // of the sample, dB
}

// Choose returns, among all combinations of the lossy passes' candidates for one layer, the one that is predicted
// to save most within a budget of output SNR. The prediction says what of an explicit request did not fit.
func Choose(ctx context.Context, l *pass.Layer, lossy []pass.Choice) (steps []*plan.Step, out plan.Prediction, err error) {
	combinations, err := combine(ctx, l, lossy)
	if err != nil {
		return nil, out, err
	}
	var explicit []string
	for _, c := range lossy {
		if len(c.Args) > 0 {
			explicit = append(explicit, c.String())
		}
	}
	return chooseAmong(ctx, l, combinations, explicit)
}

func chooseAmong(ctx context.Context, l *pass.Layer, combinations [][]*plan.Step, explicit []string) (steps []*plan.Step, out plan.Prediction, err error) {
	out = plan.Prediction{Tensor: l.Weight.Name, Linear: true}
	sample, err := l.Sample(ctx, combinations)
	if err != nil {
		return nil, out, err
	}
	before, err := sample.Energy(ctx, l.Base().Untouched())
	if err != nil {
		return nil, out, err
	}
	base := before
	if !l.Base().IsIdentity() {
		if base, err = sample.Energy(ctx, l.Base()); err != nil {
			return nil, out, err
		}
	}
	out.Before = &before
	var list []choice
	for _, steps := range combinations {
		c, ok, err := try(ctx, l, sample, steps, base, len(explicit) > 0)
		if err != nil {
			return nil, out, err
		}
		if ok {
			list = append(list, c)
		}
	}
	best, loss, joint, err := best(ctx, l, list)
	if err != nil {
		return nil, out, err
	}
	out.NonFinite = loss.NonFinite
	after := base
	switch {
	case best != nil && (best.energy.Relative < base.Relative+1e-9 || len(explicit) > 0):
		steps, after = best.steps, best.energy
		switch {
		case l.Budget.MinSNR == nil:
		case joint:
			out.InputSNR = finiteOrNil(loss.Decibels())
		default:
			out.SNR = finiteOrNil(loss.Decibels())
		}
	case len(explicit) > 0:
		out.Missed = fmt.Sprintf("%v would fall below %g dB", explicit, *l.Budget.MinSNR)
	}
	out.After = &after
	return steps, out, nil
}

// try looks at one combination of steps. ok is false where the sample alone rules it out.
func try(ctx context.Context, l *pass.Layer, sample *pass.Sample, steps []*plan.Step, base cost.Estimate, explicit bool) (c choice, ok bool, err error) {
	prog, err := l.Program(ctx, steps...)
	if err != nil {
		return c, false, err
	}
	if err := prog.Prepare(ctx, 1); err != nil {
		return c, false, err
	}
	defer prog.Release()
	c = choice{steps: steps, energy: base}
	if least := l.Budget.MinSNR; least != nil {
		loss, err := sample.Loss(ctx, prog)
		if err != nil {
			return c, false, err
		}
		// What was asked for by name is judged by the whole weight alone.
		if c.snr = loss.Decibels(); c.snr < *least-slack && !explicit {
			return c, false, nil
		}
	}
	if len(steps) > 0 {
		c.energy, err = sample.Energy(ctx, prog)
	}
	return c, true, err
}

// slack is how far a sample's SNR may be off the whole weight's, in decibels.
const slack = 0.25

// best is the choice of least energy that keeps the budget, checked on the whole weight. Without a budget nothing is
// checked. ofInputs is true where the loss is that on held-out tokens.
func best(ctx context.Context, l *pass.Layer, list []choice) (best *choice, loss program.Loss, ofInputs bool, err error) {
	for len(list) > 0 {
		i := 0
		for j := range list {
			a, b := list[j].energy.Relative, list[i].energy.Relative
			if a < b || a == b && list[j].snr > list[i].snr {
				i = j
			}
		}
		c := list[i]
		if l.Budget.MinSNR == nil {
			return &c, loss, false, nil
		}
		prog, err := l.Program(ctx, c.steps...)
		if err != nil {
			return nil, loss, false, err
		}
		if err := prog.Prepare(ctx, 1); err != nil {
			return nil, loss, false, err
		}
		loss, err = prog.Loss(ctx, 0, prog.Rows)
		prog.Release()
		if err != nil || loss.Decibels() >= *l.Budget.MinSNR {
			return &c, loss, prog.LossOfWhole(), err
		}
		list[i] = list[len(list)-1]
		list = list[:len(list)-1]
	}
	return nil, loss, false, nil
}

func finiteOrNil(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}
