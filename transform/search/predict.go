package search

import (
	"context"

	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// Predict returns the predicted energy of a layer before and after steps, and the output SNR on held-out tokens. The
// steps follow the exact steps that are already decided. Predict records the steps in l as decided.
func Predict(ctx context.Context, l *pass.Layer, steps []*plan.Step) (out plan.Prediction, err error) {
	if l == nil || l.Weight == nil || l.Context == nil {
		return out, errNoLayer
	}
	out = plan.Prediction{Tensor: l.Weight.Name, Linear: true}
	p, err := l.Program(ctx, steps...)
	if err != nil {
		return out, err
	}
	sample := l.Sample(p)
	before, err := sample.Energy(ctx, l.Base().Untouched())
	if err != nil {
		return out, err
	}
	if err := p.Prepare(ctx, 1); err != nil {
		return out, err
	}
	p.Remember()
	after, err := sample.Energy(ctx, p)
	if err != nil {
		return out, err
	}
	loss, err := heldLoss(ctx, l, p)
	p.Release()
	l.Decided(p)
	out.Before, out.After, out.InputSNR = &before, &after, finiteOrNil(loss.Decibels())
	return out, err
}
