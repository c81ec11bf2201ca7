package predict

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Quantised predicts a product with a quantised weight from a sample of the weight's rows, in the form that the tensor
// cores read. The prediction is relative to random elements of like's scale. like is w itself, or the weight from which
// w was converted. The values of both must be readable. outAxis is the dimension that counts outputs. Errors are those
// of reading the files and of ctx.
func Quantised(ctx context.Context, c *cost.Calibration, w, like *quant.Quantised, outAxis int, role cost.Role, load cost.Workload) (e cost.Estimate, err error) {
	if c == nil || w == nil || like == nil {
		return e, errors.New("a prediction needs a calibration and two quantised weights")
	}
	for _, q := range []*quant.Quantised{w, like} {
		if err := q.CanRead(); err != nil {
			return e, err
		}
	}
	sample, err := sampleOf(w, outAxis)
	if err != nil {
		return e, err
	}
	other := sample
	if like != w {
		if other, err = sampleOf(like, outAxis); err != nil {
			return e, err
		}
	}
	if sample.Scale, err = other.RMS(ctx); err == nil {
		var codes *cost.Weights
		if codes, err = packedSample(w, outAxis); err == nil && codes != nil {
			e, err = c.DequantisedEnergy(ctx, sample, *codes, role, load)
		} else if err == nil {
			e, err = c.Energy(ctx, sample, role, load)
		}
	}
	if err != nil {
		err = fmt.Errorf("weight %q: predicting energy: %w", w.Name, err)
	}
	return e, err
}

// sampleOf is [cost.SampleOf] for a quantised weight. The rows of all experts follow each other, expert by expert.
func sampleOf(w *quant.Quantised, outAxis int) (cost.Weights, error) {
	d := len(w.Shape)
	s := cost.Weights{DType: w.Operand(), Format: &w.Format, OutAxis: outAxis, Rows: w.Experts() * w.Shape[d-2], Cols: w.Shape[d-1]}
	for _, r := range cost.SampleRows(s.Rows, s.Cols, 1) {
		data, err := w.OperandRows(r[0], r[1]-r[0])
		if err != nil {
			return s, err
		}
		s.Bands = append(s.Bands, cost.Band{First: r[0], Data: data})
	}
	return s, nil
}

// packedSample returns a sample of the packed codes if kernels dequantise the weight's four-bit codes; nil for other
// weights.
func packedSample(w *quant.Quantised, outAxis int) (*cost.Weights, error) {
	if w.Operand() != weights.BF16 || outAxis != 0 {
		return nil, nil
	}
	d := len(w.Shape)
	s := &cost.Weights{DType: weights.F8E4M3, Rows: w.Experts() * w.Shape[d-2], Cols: w.Shape[d-1] / 2}
	for _, r := range cost.SampleRows(s.Rows, 2*s.Cols, 1) {
		data, err := w.PackedRows(r[0], r[1]-r[0])
		if err != nil || data == nil {
			return nil, err
		}
		s.Bands = append(s.Bands, cost.Band{First: r[0], Data: data})
	}
	return s, nil
}

// Codes is a quantised layer before and after a conversion; see [Change].
type Codes struct{ Before, After *quant.Quantised }

// len returns the number of values.
func (c *Codes) len() int {
	n := 1
	for _, d := range c.Before.Shape {
		n *= d
	}
	return n
}
