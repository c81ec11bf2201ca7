package divergence

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// Weights is [forward.Weights], spelled out so that packages that do not import it can declare the
// same. Those that are judged may leave tensors out: nil values without an error are a tensor that
// is as it was.
type Weights = interface {
	Tensor(ctx context.Context, name string) ([]float32, error)
}

// over gives what above leaves out from below.
type over struct{ above, below forward.Weights }

func (o over) Tensor(ctx context.Context, name string) ([]float32, error) {
	if values, err := o.above.Tensor(ctx, name); values != nil || err != nil {
		return values, err
	}
	return o.below.Tensor(ctx, name)
}

// single is one tensor, with all others left out.
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
