package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
)

// choice is one combination of steps for a layer, with its energy and error.
type choice struct {
	steps  []*plan.Step
	prog   *program.Program
	energy cost.Estimate // of the sample, relative
	snr    float64       // output SNR of the sample, dB
}

// before reports whether c is tried before d: c has less energy, or the same energy and a higher SNR.
func (c choice) before(d choice) bool {
	a, b := c.energy.Relative, d.energy.Relative
	return a < b || a == b && c.snr > d.snr
}

// errNoLayer is the error for a layer that [pass.NewLayer] did not make.
var errNoLayer = errors.New("no layer was given")

// Choose chooses the steps of one layer under a budget of output SNR. Of all combinations of the lossy passes'
// candidates, it returns the one with the largest predicted saving within the budget, and its energy and output SNR.
// If an explicit request breaks the budget, steps are nil and out.Missed gives the reason. Choose records the
// decision in l.
func Choose(ctx context.Context, l *pass.Layer, lossy []pass.Choice) (steps []*plan.Step, out plan.Prediction, err error) {
	if l == nil || l.Weight == nil || l.Context == nil {
		return nil, out, errNoLayer
	}
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
	programs, err := l.Programs(ctx, combinations)
	if err != nil {
		return nil, out, err
	}
	sample := l.Sample(programs...)
	whole := func() {} // after the sample, the whole layer is read
	if l.Budget.MinSNR == nil && l.Hessians == nil {
		end := sample.OnlyRead()
		whole = sync.OnceFunc(end)
		defer end() // again, to free the rest of the layer's memory
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
	source := &sourceLoss{layer: l}
	var list []choice
	lead := 0 // number of the choice whose values are kept; the others are released
	for i, steps := range combinations {
		c := choice{steps: steps, prog: programs[i], energy: base}
		ok, err := c.try(ctx, l, sample, source, len(explicit) > 0)
		switch {
		case err != nil:
			return nil, out, err
		case !ok:
			c.prog.Release()
			continue
		case len(list) == 0:
		case c.before(list[lead]):
			list[lead].prog.Release()
			lead = len(list)
		default:
			c.prog.Release()
		}
		list = append(list, c)
	}
	whole()
	best, loss, joint, err := best(ctx, l, list, source)
	if err != nil {
		return nil, out, err
	}
	if best != nil {
		if err := best.leaveOut(ctx, l, base); err != nil {
			return nil, out, err
		}
	}
	out.NonFinite = loss.NonFinite
	decided, after := l.Base(), base
	switch {
	case best != nil && (best.energy.Relative < base.Relative+1e-9 || len(explicit) > 0 || l.Base().Referenced()):
		steps, after, decided = best.steps, best.energy, best.prog
		decided.Remember()
		switch {
		case l.Budget.MinSNR == nil && len(steps) > 0 && decided.Coded() && !decided.Referenced():
			if err := sampledSNR(ctx, sample, decided, &out); err != nil {
				return nil, out, err
			}
		case l.Budget.MinSNR == nil:
		case joint:
			out.InputSNR = finiteOrNil(loss.Decibels())
		default:
			out.SNR = finiteOrNil(loss.Decibels())
		}
	case len(explicit) > 0:
		out.Missed = fmt.Sprintf("%s would lower the output SNR below %g dB", strings.Join(explicit, ", "), *l.Budget.MinSNR)
	}
	out.After = &after
	if l.Base().Referenced() {
		if err := againstReference(ctx, source, decided, &out); err != nil {
			return nil, out, err
		}
	}
	decided.Release()
	l.Decided(decided)
	return steps, out, nil
}

// sampledSNR sets the output SNR of a quantised layer that was decided without a budget. With held-out inputs, it is
// the SNR of the whole layer. Otherwise it is the SNR of the sample's rows for inputs of unit variance.
func sampledSNR(ctx context.Context, sample *pass.Sample, decided *program.Program, out *plan.Prediction) error {
	loss, err := sample.Loss(ctx, decided)
	if decided.LossOfWhole() {
		out.InputSNR = finiteOrNil(loss.Decibels())
	} else {
		out.SampleSNR = finiteOrNil(loss.Decibels())
	}
	return err
}

// againstReference sets the output SNRs of a quantised layer's source and result relative to the reference. Both SNRs
// are for held-out inputs, or both for inputs of unit variance. If the result is below the budget, out.Missed says so.
func againstReference(ctx context.Context, source *sourceLoss, decided *program.Program, out *plan.Prediction) error {
	if err := decided.Prepare(ctx, 1); err != nil {
		return err
	}
	loss, err := decided.Loss(ctx, 0, decided.Rows)
	if err != nil {
		return err
	}
	before, err := source.of(ctx, decided)
	out.SourceSNR = finiteOrNil(before.Decibels())
	if decided.LossOfWhole() {
		out.InputSNR = finiteOrNil(loss.Decibels())
	} else {
		out.SNR = finiteOrNil(loss.Decibels())
	}
	budget := source.layer.Budget
	if least := budget.MinSNR; least != nil && loss.Decibels() < *least && (out.Missed != "" || !budget.OrSource) {
		out.Missed = fmt.Sprintf("no choice of codes reaches an output SNR of %g dB relative to the reference", *least)
	}
	return err
}

// sourceLoss is the loss of a quantised layer's source values against the reference. It is computed when needed.
type sourceLoss struct {
	layer *pass.Layer
	unit  *program.Loss // for inputs of unit variance
	held  *program.Loss // on held-out inputs
}

// of returns the source's loss for the same inputs as p's loss.
func (s *sourceLoss) of(ctx context.Context, p *program.Program) (program.Loss, error) {
	if p.LossOfWhole() {
		if s.held == nil {
			held, err := heldLoss(ctx, s.layer, s.layer.Base())
			if err != nil {
				return program.Loss{}, err
			}
			s.held = &program.Loss{Signal: held.Signal, Noise: held.Error}
		}
		return *s.held, nil
	}
	if s.unit == nil {
		loss, err := s.layer.Base().Loss(ctx, 0, s.layer.Rows())
		if err != nil {
			return loss, err
		}
		s.unit = &loss
	}
	return *s.unit, nil
}

// try computes a choice's SNR and energy. ok is false if the sample already shows that the choice breaks the budget.
// The program stays prepared.
func (c *choice) try(ctx context.Context, l *pass.Layer, sample *pass.Sample, source *sourceLoss, explicit bool) (ok bool, err error) {
	if err := c.prog.Prepare(ctx, 1); err != nil {
		return false, err
	}
	if l.Budget.MinSNR != nil {
		loss, err := sample.Loss(ctx, c.prog)
		if err != nil {
			return false, err
		}
		least := *l.Budget.MinSNR
		if l.Base().Referenced() { // a result with at least the source's SNR is allowed
			before, err := source.of(ctx, c.prog)
			if err != nil {
				return false, err
			}
			least = min(least, before.Decibels())
		}
		// An explicit request is tested on the whole weight only.
		if c.snr = loss.Decibels(); c.snr < least-slack && !explicit {
			return false, nil
		}
	}
	if len(c.steps) > 0 {
		c.energy, err = sample.Energy(ctx, c.prog)
	}
	return true, err
}

// leaveOut drops the steps of a quantised layer's choice if they have no effect. base is the energy without these
// steps.
func (c *choice) leaveOut(ctx context.Context, l *pass.Layer, base cost.Estimate) error {
	// In a new format, equally near codes may be exchanged, which changes the energy slightly.
	const alike = 1e-3
	if len(c.steps) == 0 || !c.prog.Coded() || math.Abs(c.energy.Relative-base.Relative) > alike {
		return nil
	}
	none, err := c.prog.HasNoEffect(ctx, 1)
	if none {
		c.prog.Release()
		c.steps, c.prog, c.energy = nil, l.Base(), base
	}
	return err
}

// slack is how far, in dB, a sample's SNR may be below the SNR of the whole weight.
const slack = 0.25

// best returns the choice of least energy that keeps the budget on the whole weight, with its loss there. If no
// choice keeps the budget, best returns the choice of least energy that is at least as near to the reference as the
// source; nil if there is none. Without a budget, it returns the choice of least energy without a check. ofInputs is
// true if the loss is for held-out tokens.
func best(ctx context.Context, l *pass.Layer, list []choice, source *sourceLoss) (best *choice, loss program.Loss, ofInputs bool, err error) {
	slices.SortStableFunc(list, func(c, d choice) int {
		switch {
		case c.before(d):
			return -1
		case d.before(c):
			return 1
		}
		return 0
	})
	for _, c := range list {
		if l.Budget.MinSNR == nil {
			return &c, loss, false, nil
		}
		least := *l.Budget.MinSNR
		if best != nil && c.snr < least-slack {
			continue
		}
		if err := c.prog.Prepare(ctx, 1); err != nil {
			return nil, loss, false, err
		}
		found, err := c.prog.Loss(ctx, 0, c.prog.Rows)
		if err != nil || found.Decibels() >= least {
			return &c, found, c.prog.LossOfWhole(), err
		}
		if best == nil {
			loss = found
		}
		if best == nil && l.Base().Referenced() {
			before, err := source.of(ctx, c.prog)
			if err != nil {
				return nil, loss, false, err
			}
			if found.Decibels() >= before.Decibels() {
				best, ofInputs = &c, c.prog.LossOfWhole()
			}
		}
		c.prog.Release()
	}
	return best, loss, ofInputs, nil
}

func finiteOrNil(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}
