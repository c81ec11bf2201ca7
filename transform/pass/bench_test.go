package pass_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// elements is the number of elements in an iteration of the benchmarks.
const elements = 1 << 20

func benchmark(b *testing.B, d weights.DType, step *plan.Step) {
	f := formatOf(d)
	data := make([]byte, elements*f.Bits/8)
	rng := uint32(1)
	for i := range elements {
		rng = rng*1664525 + 1013904223
		f.SetElem(data, i, f.FromValue(float32(int32(rng))/(1<<31)))
	}
	p, err := alone(b, memory(d, []int{1024, 1024}, data), 0).Program(b.Context(), step)
	ok(b, err)
	out := make([]byte, len(data))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		p.Run(out, 0, p.Rows)
	}
}

func BenchmarkRound(b *testing.B) {
	for _, d := range testmodel.DTypes {
		b.Run(d.String(), func(b *testing.B) { benchmark(b, d, pass.Round.TensorStep("w", pass.Bits{Zeroed: 2})) })
	}
}

func BenchmarkGrid(b *testing.B) {
	exps := make([]int, 1024)
	for i := range exps {
		exps[i] = -4
	}
	for _, d := range testmodel.DTypes {
		b.Run(d.String(), func(b *testing.B) { benchmark(b, d, pass.Grid.TensorStep("w", pass.Steps{Exponents: exps})) })
	}
}
