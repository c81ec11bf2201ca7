package divergence

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// PerLayer measures the sensitivity of each linear layer by itself. In the order of [forward.Decoder.Layers], it calls done with
// the divergence from the model in nats per token if this layer has changed's weights and all others have base's. A nil base
// means the model's own weights. A tensor that base leaves out is the model's own.
//
// PerLayer reads the weights of each linear layer from changed once, when its turn comes, and skips layers that changed leaves
// out. It reads a tensor from base about once for every layer up to the tensor's block. An error of done ends PerLayer, which
// returns it unchanged.
func (e *Evaluator) PerLayer(ctx context.Context, base, changed Weights, done func(layer string, nats float64) error) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
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
		s, err := states.before(ctx, layer)
		if err != nil {
			return err
		}
		nats, _, err := e.finish(ctx, e.few, s, over{single{layer.Tensor, values}, states.under})
		if err != nil {
			return fmt.Errorf("with new values of %s: %w", layer.Tensor, err)
		}
		if err := done(layer.Tensor, nats); err != nil {
			return err
		}
	}
	return nil
}

// entries provides the states before layers, in the order of the layers.
type entries struct {
	*Evaluator
	under forward.Weights
	base  bool           // under differs from the model's own weights
	at    *forward.State // before the last layer that was asked for; nil at first
}

// before returns the state before the step that a layer is in. The caller may change it.
func (e *entries) before(ctx context.Context, l forward.Layer) (*forward.State, error) {
	if !e.base && (e.at == nil || e.at.Next < l.Block) {
		if s := e.few.Entry(l.Block); s != nil {
			e.at = s
		}
	}
	if e.at == nil {
		var err error
		if e.at, err = e.d.Start(ctx, e.under, e.few.End.Tokens); err != nil {
			return nil, err
		}
	}
	if err := e.d.Before(ctx, l, e.under, e.at); err != nil {
		return nil, err
	}
	return e.at.Clone(), nil
}
