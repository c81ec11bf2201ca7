package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// leastSNR is an output SNR in dB below which codes do not represent the source's weight. Feedback lowers the SNR of
// values and raises the SNR of outputs.
const leastSNR = 0

// reformatted reports whether the plan stores the weights in another format than the source.
func (r *Report) reformatted() bool { return r.Plan != nil && r.Plan.Request.Format != "" }

// madeOf returns the quantised weight of the output for a weight of the source; nil for a tensor that stays
// unquantised.
func (c *claims) madeOf(tensor string) *quant.Quantised {
	if c.made == nil {
		return nil
	}
	w, _ := c.made.Weight(tensor)
	return w
}

// lookMade compares a quantised weight of the output with the source's unquantised weight.
func (c *claims) lookMade(ctx context.Context, a weights.Tensor, w *quant.Quantised) (Tensor, error) {
	t := Tensor{Name: a.Name, DType: a.DType.String(), Shape: a.Shape, Class: Lossy, Linear: c.layout.IsLinear(a.Info)}
	if c.layout != nil && c.layout.Claims[a.Name] != nil {
		t.Kind = c.layout.Claims[a.Name].Kind
	}
	bad := func(format string, args ...any) {
		if t.Problem == "" {
			t.Problem = fmt.Sprintf(format, args...)
		}
	}
	f, known := a.DType.Format()
	if !known || !slices.Equal(w.Shape, a.Shape) || len(a.Shape) != 2 {
		bad("the output has a quantised weight of shape %v under this name, and the source has a tensor of type %s%v", w.Shape, a.DType, a.Shape)
		return t, nil
	}
	m, err := w.Read(0)
	if err != nil {
		bad("%v", err)
		return t, ctx.Err()
	}
	var d difference
	before, after := make([]float32, m.K), make([]float32, m.K)
	for n := range m.N {
		if err := ctx.Err(); err != nil {
			return t, err
		}
		f.Decode(before, weights.Need(a.Data[n*m.K*f.Bits/8:]))
		m.Row(after, n)
		d.row(before, after)
	}
	t.SNR, t.NonFinite, t.ZerosAdded = decibels(d.signal, d.noise), d.nonFinite, d.zerosAdded
	if d.spread > 0 {
		bad("%s NaN or infinite in only one of the models", valuesAre(d.spread))
	}
	if t.SNR != nil && *t.SNR < leastSNR {
		bad("the output SNR is %s: the codes do not represent the source's values", inDecibels(*t.SNR))
	}
	for _, s := range c.steps[a.Name] {
		if s.Codes == nil {
			continue
		}
		near := func(dst []float32, n int) { f.Decode(dst, a.Data[n*m.K*f.Bits/8:]) }
		err := s.Codes(ctx, &Codes{Result: m, Reference: true, Near: near, Feedback: c.anywhere(a.Name)})
		if parallel.Ended(err) {
			return t, err
		}
		if err != nil {
			bad("%s: %v", s.pass, err)
		}
	}
	c.holdSNR(&t, a.Name)
	return t, nil
}

// sameShard reports tensors of a quantised weight that are in another shard than the source's weight.
func (r *Report) sameShard(a weights.Tensor, w *quant.Quantised) {
	for _, part := range w.Tensors {
		if is, was := filepath.Base(part.File), filepath.Base(a.File); is != was {
			r.problem("tensor %q is in the shard %s, and the source's %q is in %s", part.Name, is, a.Name, was)
		}
	}
}

// sameConfig reports a config.json of the output that differs from the source's in other fields than
// quantization_config.
func (r *Report) sameConfig(src, out *weights.Model) error {
	read := func(m *weights.Model) (fields map[string]any, err error) {
		js, err := m.ReadFile(weights.ConfigName, bounded.Config)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(js))
		d.UseNumber()
		if err := d.Decode(&fields); err != nil {
			return nil, weights.FileErrorf(m.Path(weights.ConfigName), "%w", err)
		}
		delete(fields, "quantization_config")
		return fields, nil
	}
	a, err := read(src)
	if err != nil {
		return err
	}
	b, err := read(out)
	switch {
	case err != nil:
		r.problem("%v", err)
	case !reflect.DeepEqual(a, b):
		r.problem("file config.json differs from the source's in other fields than quantization_config")
	}
	return nil
}
