package evaluate_test

import (
	"context"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// held are weights that are given.
type held map[string][]float32

func (h held) Tensor(_ context.Context, name string) ([]float32, error) { return h[name], nil }

// TestOutputSNR: the ratio is the sum of squares of x·wᵀ over that of x·(w'-w)ᵀ in the first batch, in both storage orders.
func TestOutputSNR(t *testing.T) {
	const rows, k, n = 300, 3, 2
	x := sgemm.Dense(rows, k, nil)
	for i := range x.Data {
		x.Data[i] = float32(math.Sin(float64(i)))
	}
	w := func(output, input int) float64 { return float64(1 + output*2 - input) }
	change := func(output, input int) float64 { return float64(output+input*input) / 16 }
	var signal, noise float64
	for i := range rows {
		for output := range n {
			var y, e float64
			for input := range k {
				y += float64(x.Row(i)[input]) * w(output, input)
				e += float64(x.Row(i)[input]) * change(output, input)
			}
			signal, noise = signal+y*y, noise+e*e
		}
	}
	want := 10 * math.Log10(signal/noise)
	for axis := range 2 {
		before, after := make([]float32, n*k), make([]float32, n*k)
		for output := range n {
			for input := range k {
				at := output*k + input
				if axis == 1 {
					at = input*n + output
				}
				before[at], after[at] = float32(w(output, input)), float32(w(output, input)+change(output, input))
			}
		}
		layers := []forward.Layer{{Tensor: "w", Inputs: k, Outputs: n}, {Tensor: "same", Inputs: k, Outputs: n}}
		layout := &arch.Layout{Claims: map[string]*arch.Claim{"w": {OutAxis: axis}, "same": {OutAxis: axis}}}
		o := evaluate.NewOutputSNR(t.Context(), held{"w": before, "same": before}, held{"w": after, "same": before}, layers, layout, 0)
		for _, batch := range []sgemm.Matrix{x, sgemm.Dense(rows, k, nil)} {
			if err := o.Input([]string{"other", "w", "same"}, batch); err != nil {
				t.Fatal(err)
			}
		}
		got := o.Layers()
		if len(got) != 1 || got[0].Name != "w" || math.Abs(got[0].Decibels-want) > 1e-4 || o.Tokens() != rows {
			t.Errorf("outputs along axis %d: %+v, want %v dB for w and nothing for what is the same", axis, got, want)
		}
	}
}
