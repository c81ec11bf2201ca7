package forward

import (
	"context"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// ffn is the activation of a feed-forward network: z = act(y), or act(gate)·up if y is gate and up side by side.
type ffn struct {
	neurons int
	gated   bool
	act     func(to, from []float32)
}

func (f *ffn) widths() (in, out int) {
	if f.gated {
		return 2 * f.neurons, f.neurons
	}
	return f.neurons, f.neurons
}

func (f *ffn) mix(ctx context.Context, d *Decoder, z, y sgemm.Matrix, _ [][]int32) error {
	return d.rows(ctx, y.Rows, func(i int) {
		to, from := z.Row(i), y.Row(i)
		f.act(to, from[:len(to)])
		if f.gated {
			for j, up := range from[f.neurons:] {
				to[j] *= up
			}
		}
	})
}

// activations by their names in config.json.
var activations = map[string]func(to, from []float32){
	"gelu":              elementwise(gelu),
	"gelu_fast":         geluTanh,
	"gelu_new":          geluTanh,
	"gelu_pytorch_tanh": geluTanh,
	"relu":              elementwise(relu),
	"silu":              silu,
	"swish":             silu,
}

// elementwise applies act to each element.
func elementwise(act func(x float32) float32) func(to, from []float32) {
	return func(to, from []float32) {
		for i, x := range from {
			to[i] = act(x)
		}
	}
}

// siluGo is x·sigmoid(x).
func siluGo(x float32) float32 {
	v := float64(x)
	return float32(v / (1 + exp(-v)))
}

// gelu is x·Φ(x), with Φ the normal distribution.
func gelu(x float32) float32 {
	v := float64(x)
	return float32(v / 2 * math.Erfc(-v/math.Sqrt2))
}

// geluTanhGo is x/2·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³), which is x·sigmoid(2u).
func geluTanhGo(x float32) float32 {
	const slope = 1.5957691216057308 // 2·√(2/π)
	v := float64(x)
	cube := float64(float64(v*v) * v)
	return float32(v / (1 + exp(-slope*(v+float64(0.044715*cube)))))
}

// relu is x where it is above 0.
func relu(x float32) float32 { return max(x, 0) }
