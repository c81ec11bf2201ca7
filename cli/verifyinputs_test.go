package cli

import (
	"context"
	"maps"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/verify"
)

// held are weights that are given.
type held map[string][]float32

func (h held) Tensor(_ context.Context, name string) ([]float32, error) { return h[name], nil }

// TestInputNoise: the ratio is that of the sums of squares of x·wᵀ and x·(w'-w)ᵀ over the first batch,
// whichever way the weights lie.
func TestInputNoise(t *testing.T) {
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
		o := &inputNoise{ctx: t.Context(), before: held{"w": before, "same": before}, after: held{"w": after, "same": before},
			layers: map[string]forward.Layer{"w": layers[0], "same": layers[1]}, axis: func(string) int { return axis }, power: map[string][2]float64{}}
		for _, batch := range []sgemm.Matrix{x, sgemm.Dense(rows, k, nil)} {
			if err := o.Input([]string{"other", "w", "same"}, batch); err != nil {
				t.Fatal(err)
			}
		}
		r := o.report(layers, evaluationPart)
		if len(r.Tensors) != 1 || r.Tokens != rows || math.Abs(r.Tensors[0].SNR-want) > 1e-4 || *r.of("w") != r.Tensors[0].SNR || r.of("same") != nil {
			t.Errorf("outputs along axis %d: %+v, want %v dB for w and nothing for what is the same", axis, r, want)
		}
	}
}

// TestComparable: lossy layers, but not those whose weights are elsewhere or have something added.
func TestComparable(t *testing.T) {
	r := &verifyJSON{Report: &verify.Report{
		Plan: &transform.Plan{Steps: []*transform.Step{{Tensor: "shifted", Shift: &transform.Shift{}}, {Tensor: "lossy"}}},
		Tensors: []verify.Tensor{
			{Name: "lossy", Linear: true, Class: verify.Lossy},
			{Name: "moved", Linear: true, Class: verify.Lossy, Relation: &verify.Relation{RowsMoved: 2}},
			{Name: "shifted", Linear: true, Class: verify.Lossy},
			{Name: "same", Linear: true, Class: verify.Identical},
			{Name: "exact", Linear: true, Class: verify.Exact, Relation: &verify.Relation{RowsMoved: 2}},
			{Name: "embedding", Class: verify.Lossy},
		}}}
	if names, others := r.comparable(); !maps.Equal(names, map[string]bool{"lossy": true}) || others != 2 {
		t.Errorf("%v, and %d others", names, others)
	}
}
