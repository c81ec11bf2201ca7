package forward

import (
	"context"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Weights returns tensors by their name in the checkpoint: decoded, row-major, in the stored layout. One goroutine reads the
// tensors of one layer after another. The Decoder only reads the values, and does not keep them after the layer. It reads the
// embedding at the start, and a tied embedding again at the end.
type Weights interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// Stored returns a model's own weights. Quantised weights have their names in an unquantised checkpoint; their values are
// computed in float32. The model must stay open while the weights are used.
func Stored(m *weights.Model) Weights {
	return stored{m, sync.OnceValues(func() (*quant.Description, error) { return quant.Describe(m) })}
}

type stored struct {
	model     *weights.Model
	quantised func() (*quant.Description, error)
}

func (s stored) Tensor(ctx context.Context, name string) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := s.quantised()
	if err != nil {
		return nil, err
	}
	if w, ok := q.Weight(name); ok && !w.Plain() {
		return w.Values(ctx, 0)
	}
	t, ok := s.model.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("tensor %q: is not in %s", name, s.model.Dir)
	}
	f, ok := t.DType.Format()
	if !ok {
		return nil, weights.TensorErrorf(t.File, name, "values of type %s cannot be decoded: store the tensor as BF16, F16 or F32", t.DType)
	}
	values := make([]float32, t.Len())
	err = weights.Guard(t.File, func() error {
		f.Decode(values, weights.Need(t.Data))
		return nil
	})
	weights.Forget(t.Data) // otherwise all tensors would stay in the process's memory
	return values, err
}

// tensor returns a tensor, which must have n values.
func tensor(ctx context.Context, w Weights, name string, n int) ([]float32, error) {
	v, err := w.Tensor(ctx, name)
	if err == nil && len(v) != n {
		err = fmt.Errorf("tensor %q: %d values were given, but its shape has %d: give weights of this model", name, len(v), n)
	}
	return v, err
}

// optional is tensor for an optional tensor; it returns nil for an empty name.
func optional(ctx context.Context, w Weights, name string, n int) ([]float32, error) {
	if name == "" {
		return nil, nil
	}
	return tensor(ctx, w, name, n)
}
