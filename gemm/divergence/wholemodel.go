package divergence

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// WholeModel evaluates all weights of changed together: the divergence from the model, and the rise of the
// mean loss with its 95 % paired interval over sequences ([forward.Compare]), in nats per token. With a single sequence the ends
// of the interval are infinite. Tensors that changed leaves out are the model's own.
//
// The leading blocks whose weights have not changed since the call before are not computed again.
func (e *Evaluator) WholeModel(ctx context.Context, changed Weights) (divergence, loss float64, interval [2]float64, err error) {
	fail := func(err error) (float64, float64, [2]float64, error) { return 0, 0, [2]float64{}, err }
	w := over{changed, e.own}
	s, err := e.retrace(ctx, w)
	if err != nil {
		return fail(err)
	}
	divergence, scores, err := e.d.Divergence(ctx, e.all, s, w)
	if err != nil {
		return fail(err)
	}
	c, err := forward.Compare(e.all.Scores, scores)
	if err != nil {
		return fail(err)
	}
	return divergence, c.Difference, [2]float64{c.Low, c.High}, nil
}
