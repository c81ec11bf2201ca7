package predict

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Change is the stored weight of a linear layer before and after a conversion. Before and After must not be empty, and
// their dtypes must be decodable ([weights.DType.Format]).
type Change struct {
	Before, After weights.Tensor
	// Codes replaces Before and After for a quantised layer. New scales change the magnitude of the layer's codes, so
	// both predictions are relative to random weights of Before's scale. Default: nil.
	Codes *Codes
	// OutAxis is the stored dimension that counts outputs.
	OutAxis int
	// Rescaled is true if the weights were multiplied by powers of two. Both predictions are then relative to random
	// weights of Before's scale. Relative to random weights of its own scale, After would show no saving.
	Rescaled bool
}

// ConversionOptions describe the products.
type ConversionOptions struct {
	Role cost.Role
	// Workload must be given; see [cost.DefaultWorkload].
	Workload cost.Workload
	// Progress is called after every layer and counts bytes of Before. Default: not called.
	Progress func(Event)
}

// Conversion predicts the energy of all layers' products after a conversion, relative to before. The ratio is nil if
// there are no layers. Conversion reads samples of the weights. Errors are those of reading the weights and of ctx.
func Conversion(ctx context.Context, c *cost.Calibration, changes []Change, o ConversionOptions) (*Ratio, error) {
	var done, all int64
	for _, l := range changes {
		all += l.size()
	}
	var total Ratio
	for _, l := range changes {
		before, after, err := l.estimates(ctx, c, o)
		if ctx.Err() != nil {
			return nil, ctx.Err() // without the name of a tensor
		}
		if err != nil {
			return nil, err
		}
		total.Add(l.len(), before, after)
		done += l.size()
		if o.Progress != nil {
			o.Progress(Event{Stage: "energy", Done: done, Total: all})
		}
	}
	return total.Known(), nil
}

// Kernels describes the kernels that predictions of layers assume; see [cost.AssumedKernels].
func Kernels(changes []Change, role cost.Role, load cost.Workload) []string {
	var list []cost.Multiplied
	for _, l := range changes {
		if l.Codes != nil {
			list = append(list, cost.Multiplied{Operand: l.Codes.Before.Operand(), Format: &l.Codes.Before.Format})
		} else {
			list = append(list, cost.Multiplied{Operand: l.Before.DType})
		}
	}
	return cost.AssumedKernels(list, role, load)
}

func (l *Change) len() int {
	if l.Codes != nil {
		return l.Codes.len()
	}
	return l.Before.Len()
}

// size returns the size of Before in bytes.
func (l *Change) size() int64 {
	if l.Codes != nil {
		return l.Codes.Before.Tensors[0].Size()
	}
	return l.Before.Size()
}

// estimates predicts a layer's products before and after.
func (l *Change) estimates(ctx context.Context, c *cost.Calibration, o ConversionOptions) (before, after cost.Estimate, err error) {
	var errA, errB error
	if codes := l.Codes; codes != nil {
		before, errA = Quantised(ctx, c, codes.Before, codes.Before, l.OutAxis, o.Role, o.Workload)
		after, errB = Quantised(ctx, c, codes.After, codes.Before, l.OutAxis, o.Role, o.Workload)
		return before, after, errors.Join(errA, errB)
	}
	like := l.After
	if l.Rescaled {
		like = l.Before
	}
	before, errA = Tensor(ctx, c, l.Before, l.Before, l.OutAxis, o.Role, o.Workload)
	after, errB = Tensor(ctx, c, l.After, like, l.OutAxis, o.Role, o.Workload)
	return before, after, errors.Join(errA, errB)
}

// Tensor predicts a product with a stored weight from a sample of the weight's rows, relative to random weights of
// like's scale. like is t itself, or the weight from which t was converted. t must not be empty. outAxis is the stored
// dimension that counts outputs. Errors are those of reading the files and of ctx.
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
