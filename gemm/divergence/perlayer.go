package divergence

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// PerLayer calls done for each linear layer, in the order of [forward.Decoder.Layers], with the
// divergence from the model, in nats per token, of base's weights where that layer alone has
// changed's. base is nil for the model's own weights; what it leaves out is the model's own, too.
//
// Only weights of linear layers are asked of changed, once each and only when their turn comes; the
// values are kept until the divergence is known. Layers that changed leaves out are passed over. base
// is asked for a tensor about once for every layer up to its block. An error of done ends it and is
// returned as it is.
func (e *Evaluator) PerLayer(ctx context.Context, base, changed Weights, done func(layer string, nats float64) error) error {
	states := entries{Evaluator: e, under: e.own}
	if base != nil {
		states.under, states.base = over{base, e.own}, true
	}
	for _, layer := range e.d.Layers() {
		if err := ctx.Err(); err != nil {
			return err
		}
		values, err := changed.Tensor(ctx, layer.Tensor)
		if err != nil {
			return err
		}
		if values == nil {
			continue
		}
		s, err := states.before(ctx, layer.Block)
		if err != nil {
			return err
		}
		nats, _, err := e.finish(ctx, e.few, s, over{single{layer.Tensor, values}, states.under})
		if err != nil {
			return fmt.Errorf("with another %s: %w", layer.Tensor, err)
		}
		if err := done(layer.Tensor, nats); err != nil {
			return err
		}
	}
	return nil
}

// entries gives the states before blocks, in ascending order of the blocks.
type entries struct {
	*Evaluator
	under forward.Weights
	base  bool           // under is not the model's own
	at    *forward.State // before the last block that was asked for; nil at first, and where the pass kept the states
}

// before is a state that the caller may change.
func (e *entries) before(ctx context.Context, block int) (*forward.State, error) {
	if !e.base {
		if s := e.few.Entry(block); s != nil {
			return s, nil
		}
	}
	if e.at == nil {
		var err error
		if e.at, err = e.d.Start(ctx, e.under, e.few.End.Tokens); err != nil {
			return nil, err
		}
	}
	if err := e.walk(ctx, e.at, e.under, block); err != nil {
		return nil, err
	}
	return e.at.Clone(), nil
}
