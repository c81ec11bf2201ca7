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
	under := e.own
	if base != nil {
		under = over{base, e.own}
	}
	var entry *forward.State // of the layer's block, under base
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
		if entry == nil {
			if entry, err = e.d.Start(ctx, under, e.end.Tokens); err != nil {
				return err
			}
		}
		if err := e.walk(ctx, entry, under, layer.Block); err != nil {
			return err
		}
		nats, err := e.finish(ctx, entry.Clone(), over{single{layer.Tensor, values}, under})
		if err != nil {
			return fmt.Errorf("with another %s: %w", layer.Tensor, err)
		}
		if err := done(layer.Tensor, nats); err != nil {
			return err
		}
	}
	return nil
}
