package forward

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Weights gives tensors by their name in the checkpoint: decoded, row-major, in the stored layout. One
// goroutine asks for the tensors of one layer after another. The values are only read, and not kept after
// the layer. The embedding is asked for at the start, and a tied one again at the end.
type Weights interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// Stored gives a model's own weights. The model stays open as long as they are used.
func Stored(m *weights.Model) Weights { return stored{m} }

type stored struct{ model *weights.Model }

func (s stored) Tensor(ctx context.Context, name string) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, ok := s.model.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("tensor %q: is not in %s", name, s.model.Dir)
	}
	f, ok := t.DType.Format()
	if !ok {
		return nil, fmt.Errorf("%s: tensor %q: values of type %s are not decoded: store it as BF16, F16 or F32", t.File, name, t.DType)
	}
	values := make([]float32, t.Len())
	err := weights.Guard(t.File, func() error {
		f.Decode(values, t.Data)
		return nil
	})
	return values, err
}

// tensor asks for a tensor with n values.
func tensor(ctx context.Context, w Weights, name string, n int) ([]float32, error) {
	v, err := w.Tensor(ctx, name)
	if err == nil && len(v) != n {
		err = fmt.Errorf("tensor %q: %d values were given, its shape has %d: are these the weights of another model?", name, len(v), n)
	}
	return v, err
}

// optional is tensor for one that may be missing: an empty name has no values.
func optional(ctx context.Context, w Weights, name string, n int) ([]float32, error) {
	if name == "" {
		return nil, nil
	}
	return tensor(ctx, w, name, n)
}
