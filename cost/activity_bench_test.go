package cost

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Run these benchmarks with -cpu 1, because they compare speed per core.

const (
	benchBytes = 256 << 20 // larger than any cache, so that all data comes from memory
	benchCols  = 4096
	layerSigma = 0.025 // standard deviation of a trained layer
)

// BenchmarkCopy is the reference: a plain copy of the same bytes, into memory already touched.
func BenchmarkCopy(b *testing.B) {
	data, to := benchData(weights.BF16, nil), make([]byte, benchBytes)
	copy(to, data)
	b.SetBytes(benchBytes)
	for b.Loop() {
		copy(to, data)
	}
}

// BenchmarkMeasure counts all activity with one worker, by the kernel if there is one.
func BenchmarkMeasure(b *testing.B) {
	benchCases(b, func(b *testing.B, d weights.DType, data []byte) {
		f := format(d)
		t := tensor(d, benchBytes/(f.Bits/8)/benchCols, benchCols, data)
		for b.Loop() {
			if _, err := Measure(context.Background(), t, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWords is BenchmarkMeasure in plain Go, also on machines with a kernel.
func BenchmarkWords(b *testing.B) {
	benchCases(b, func(b *testing.B, d weights.DType, data []byte) {
		l := newLanes(format(d))
		rowBytes := benchCols * l.size
		cur, before, above := neighbours(data, l.size, rowBytes, len(data)-rowBytes)
		for b.Loop() {
			var t tally
			for len(cur) > 0 {
				n := min(pieceBytes, len(cur))
				t.addWords(l, cur[:n], before[:n], above[:n])
				cur, before, above = cur[n:], before[n:], above[n:]
			}
			cur, before, above = neighbours(data, l.size, rowBytes, len(data)-rowBytes)
		}
	})
}

// benchCases are normal values in every format, and harder cases in BF16: zeros, and values of 2 and above, whose
// blocks all need the check for special values.
func benchCases(b *testing.B, bench func(*testing.B, weights.DType, []byte)) {
	run := func(name string, d weights.DType, change func(r *rand.Rand, i int, v float64) float64) {
		b.Run(name, func(b *testing.B) {
			data := benchData(d, change)
			b.SetBytes(benchBytes)
			bench(b, d, data)
		})
	}
	for _, d := range dtypes {
		run(d.String(), d, nil)
	}
	run("BF16/wide", weights.BF16, func(_ *rand.Rand, _ int, v float64) float64 { return 50 * v })
	run("BF16/half zero", weights.BF16, func(r *rand.Rand, _ int, v float64) float64 { return v * float64(r.IntN(2)) })
	run("BF16/few zeros", weights.BF16, func(r *rand.Rand, _ int, v float64) float64 { return v * float64(min(1, r.IntN(5000))) })
	run("BF16/2 of 4 zero", weights.BF16, func(_ *rand.Rand, i int, v float64) float64 { return v * float64(i/2%2) })
}

// benchData returns a million normal values with a trained layer's deviation, changed and repeated.
func benchData(d weights.DType, change func(r *rand.Rand, i int, v float64) float64) []byte {
	f, data := format(d), make([]byte, benchBytes)
	r := rand.New(rand.NewPCG(1, 2))
	n := 1 << 20
	for i := range n {
		v := layerSigma * r.NormFloat64()
		if d == weights.I8 {
			v *= 1000
		}
		if change != nil {
			v = change(r, i, v)
		}
		f.SetElem(data, i, f.FromValue(float32(v)))
	}
	for done := n * f.Bits / 8; done < len(data); {
		done += copy(data[done:], data[:done])
	}
	return data
}
