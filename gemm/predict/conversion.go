package predict

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Change is the stored weight of a linear layer before and after a conversion. Neither is empty, and
// values of their types are known.
type Change struct {
	Before, After weights.Tensor
	// OutAxis is the stored dimension that counts outputs.
	OutAxis int
	// Rescaled weights were multiplied by powers of two: both are then predicted relative to random
	// weights of Before's scale, or the saving of the powers would not show.
	Rescaled bool
}

// ConversionOptions say what the products are.
type ConversionOptions struct {
	Role cost.Role
	// Workload must be given; see [cost.DefaultWorkload].
	Workload cost.Workload
	// Progress is told of every layer, in bytes of Before. Default: no one is told.
	Progress func(Event)
}

// Conversion predicts the energy of products by all layers, after over before; nil where there are no
// layers. Samples of the weights are read, under a guard.
func Conversion(ctx context.Context, c *cost.Calibration, changes []Change, o ConversionOptions) (*Ratio, error) {
	var done, all int64
	for _, l := range changes {
		all += l.Before.Size()
	}
	var total Ratio
	for _, l := range changes {
		like := l.After
		if l.Rescaled {
			like = l.Before
		}
		before, errA := Tensor(ctx, c, l.Before, l.Before, l.OutAxis, o.Role, o.Workload)
		after, errB := Tensor(ctx, c, l.After, like, l.OutAxis, o.Role, o.Workload)
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		total.Add(l.Before.Len(), before, after)
		done += l.Before.Size()
		if o.Progress != nil {
			o.Progress(Event{Stage: "energy", Done: done, Total: all})
		}
	}
	return total.Known(), nil
}

// Tensor predicts a product by a stored weight from a sample of its rows, relative to random weights of
// the scale of like: t itself, or the weight that t was made from. t is not empty, and outAxis is the stored
// dimension that counts outputs. Both are read under a guard.
func Tensor(ctx context.Context, c *cost.Calibration, t, like weights.Tensor, outAxis int, role cost.Role, w cost.Workload) (e cost.Estimate, err error) {
	files := t.File
	if like.File != t.File {
		files += " or " + like.File
	}
	err = weights.Guard(files, func() error {
		sample := cost.SampleOf(t, outAxis)
		if sample.Scale, err = cost.SampleOf(like, outAxis).RMS(ctx); err == nil {
			e, err = c.Energy(ctx, sample, role, w)
		}
		if err != nil {
			err = fmt.Errorf("%s: tensor %q: predicting energy: %w", t.File, t.Name, err)
		}
		return err
	})
	return e, err
}
