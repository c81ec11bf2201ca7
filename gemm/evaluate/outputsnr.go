package evaluate

import (
	"context"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// OutputSNR measures the output SNR of layers with changed weights, on the layers' inputs in a model. The SNR is the power of a
// layer's outputs over the power of their change. OutputSNR observes the model's forward pass, and uses each layer's first batch:
// a few thousand tokens are enough for the ratio.
type OutputSNR struct {
	ctx           context.Context // context of the pass, which forward.Observer does not get
	before, after forward.Weights
	layers        []forward.Layer
	layout        *arch.Layout
	workers       int

	tokens int
	power  map[string][2]float64 // by weight: sums of squares of the outputs and of their change
}

// LayerSNR is the output SNR of a layer in dB. The layer has the name of its weight.
type LayerSNR struct {
	Name     string
	Decibels float64
}

// NewOutputSNR returns an observer for a pass under ctx with the weights before. It measures the given layers. after has
// weights of the same names and shapes. workers is the number of goroutines; 0: all processors.
func NewOutputSNR(ctx context.Context, before, after forward.Weights, layers []forward.Layer, layout *arch.Layout, workers int) *OutputSNR {
	return &OutputSNR{ctx: ctx, before: before, after: after, layers: layers, layout: layout, workers: workers, power: map[string][2]float64{}}
}

// OutputSNR returns an observer for a pass of before under ctx. It measures the layers whose weights are in wanted, by
// name. after is a model with the same names and shapes.
func (s *Scorer) OutputSNR(ctx context.Context, before, after *weights.Model, wanted map[string]bool) *OutputSNR {
	layers := slices.DeleteFunc(s.Decoder.Layers(), func(l forward.Layer) bool { return !wanted[l.Tensor] })
	return NewOutputSNR(ctx, s.Weights(before), s.Weights(after), layers, s.Layout, s.Decoder.Workers)
}

// Input implements [forward.Observer].
func (o *OutputSNR) Input(names []string, x sgemm.Matrix) error {
	for _, l := range o.layers {
		name := l.Tensor
		if _, done := o.power[name]; done || !slices.Contains(names, name) {
			continue
		}
		before, err := o.before.Tensor(o.ctx, name)
		if err != nil {
			return err
		}
		after, err := o.after.Tensor(o.ctx, name)
		if err != nil {
			return err
		}
		noise := make([]float32, len(after))
		for i := range noise {
			noise[i] = after[i] - before[i]
		}
		var p [2]float64
		for i, w := range [][]float32{before, noise} {
			if p[i], err = o.outputPower(x, w, l); err != nil {
				return err
			}
		}
		o.tokens, o.power[name] = x.Rows, p
	}
	return nil
}

// outputPower returns the sum of squares of a layer's outputs for the inputs x[tokens,K].
func (o *OutputSNR) outputPower(x sgemm.Matrix, values []float32, l forward.Layer) (sum float64, err error) {
	w := sgemm.Dense(l.Outputs, l.Inputs, values)
	transposed := o.layout.OutAxis(l.Tensor) == 1
	if transposed {
		w = sgemm.Dense(l.Inputs, l.Outputs, values)
	}
	const chunk = 128 // tokens at a time, because the head has as many outputs as the vocabulary
	y := sgemm.Dense(min(chunk, x.Rows), l.Outputs, nil)
	for from := 0; from < x.Rows; from += chunk {
		to := min(from+chunk, x.Rows)
		part := y.Slice(0, to-from, 0, l.Outputs)
		if err := (forward.CPU{Workers: o.workers}).Mul(o.ctx, part, x.Slice(from, to, 0, x.Cols), w, transposed); err != nil {
			return 0, err
		}
		for i := range part.Rows {
			for _, v := range part.Row(i) {
				sum += float64(float64(v) * float64(v))
			}
		}
	}
	return sum, nil
}

// Tokens returns the number of tokens in the first batch, on which the ratios were measured.
func (o *OutputSNR) Tokens() int { return o.tokens }

// Layers returns the ratios, in the order in which the layers are computed. It leaves out layers without a finite ratio,
// such as those with the same weights in both models.
func (o *OutputSNR) Layers() (all []LayerSNR) {
	for _, l := range o.layers {
		p := o.power[l.Tensor]
		if snr := float64(10 * elementary.Log10(p[0]/p[1])); snr-snr == 0 {
			all = append(all, LayerSNR{l.Tensor, snr})
		}
	}
	return all
}
