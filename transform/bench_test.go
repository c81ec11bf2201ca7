package transform

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// elements per iteration of the benchmarks.
const elements = 1 << 20

func benchmark(b *testing.B, d weights.DType, step *Step) {
	f := formatOf(d)
	data := make([]byte, elements*f.Bits/8)
	rng := uint32(1)
	for i := range elements {
		rng = rng*1664525 + 1013904223
		f.SetElem(data, i, f.FromValue(float32(int32(rng))/(1<<31)))
	}
	x := memory(d, []int{1024, 1024}, data)
	p := *alone(x, 0).base
	pass, _ := Lookup(step.Pass)
	ok(b, pass.compile(step, &compiler{prog: &p}))
	out := make([]byte, len(data))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		p.run(out, 0, p.rows)
	}
}

func BenchmarkRound(b *testing.B) {
	for _, d := range kinds {
		b.Run(d.String(), func(b *testing.B) { benchmark(b, d, &Step{Pass: "round", Round: &Bits{Zeroed: 2}}) })
	}
}

func BenchmarkGrid(b *testing.B) {
	exps := make([]int, 1024)
	for i := range exps {
		exps[i] = -4
	}
	for _, d := range kinds {
		b.Run(d.String(), func(b *testing.B) { benchmark(b, d, &Step{Pass: "grid", Grid: &Grid{Exponents: exps}}) })
	}
}
