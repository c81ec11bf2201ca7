package divergence

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// Weights is the interface [forward.Weights], so that packages can declare the same type without importing forward. Changed
// weights may leave tensors out: nil values without an error mean that the tensor is unchanged.
type Weights = interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// over returns a tensor from above, or from below if above leaves it out.
type over struct{ above, below forward.Weights }

func (o over) Tensor(ctx context.Context, name string) ([]float32, error) {
	if values, err := o.above.Tensor(ctx, name); values != nil || err != nil {
		return values, err
	}
	return o.below.Tensor(ctx, name)
}

// single is a Weights with one tensor.
type single struct {
	name   string
	values []float32
}

func (s single) Tensor(_ context.Context, name string) ([]float32, error) {
	if name == s.name {
		return s.values, nil
	}
	return nil, nil
}
