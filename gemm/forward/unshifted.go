package forward

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Unshifted returns a model's weights minus their stored shifts (tensors *[weights.ShiftSuffix]). A runtime gets the
// same outputs by subtracting shift·Σx. The model must stay open while the weights are used.
func Unshifted(m *weights.Model, layout *arch.Layout) Weights { return unshifted{Stored(m), m, layout} }

type unshifted struct {
	Weights
	model  *weights.Model
	layout *arch.Layout
}

func (u unshifted) Tensor(ctx context.Context, name string) ([]float32, error) {
	values, err := u.Weights.Tensor(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, shifted := u.model.Tensor(name + weights.ShiftSuffix); !shifted {
		return values, nil
	}
	shift, err := u.Weights.Tensor(ctx, name+weights.ShiftSuffix)
	if err != nil {
		return nil, err
	}
	if len(shift) == 0 || len(values)%len(shift) != 0 {
		return nil, fmt.Errorf("tensor %q: its %d shifts do not fit the %d weights: convert the model again", name+weights.ShiftSuffix, len(shift), len(values))
	}
	inputs := len(values) / len(shift)
	for i := range values {
		if u.layout.OutAxis(name) == 0 {
			values[i] -= shift[i/inputs]
		} else {
			values[i] -= shift[i%len(shift)]
		}
	}
	return values, nil
}
