package rounding

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

var floats = []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E5M2}

var allTypes = append([]weights.DType{weights.I8}, floats...)

func format(t rapid.TB, d weights.DType) weights.Format {
	f, ok := d.Format()
	if !ok {
		t.Fatalf("no format for %s", d)
	}
	return f
}

func normal(seed uint64, n, k int) sgemm.Matrix {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := sgemm.Dense(n, k, nil)
	for i := range m.Data {
		m.Data[i] = float32(rng.NormFloat64())
	}
	return m
}

// storedNormal returns normal values of the format. Values of I8 cover its range.
func storedNormal(seed uint64, n, k int, f weights.Format) sgemm.Matrix {
	m := normal(seed, n, k)
	for i, v := range m.Data {
		if !f.IsFloat() {
			v *= 40
		}
		m.Data[i] = stored(f, v)
	}
	return m
}

func stored(f weights.Format, v float32) float32 { return f.Value(f.FromValue(v)) }

// secondMoment returns XᵀX/tokens for correlated inputs of different sizes. With fewer tokens than inputs, it is
// singular.
func secondMoment(seed uint64, k, tokens int) sgemm.Matrix {
	rng := rand.New(rand.NewPCG(seed, 2))
	x := sgemm.Dense(tokens, k, nil)
	size := make([]float64, k)
	for i := range size {
		size[i] = math.Exp(0.7 * rng.NormFloat64())
	}
	for i := range tokens {
		row, common, last := x.Row(i), rng.NormFloat64(), 0.0
		for j := range row {
			last = 0.8*last + 0.6*rng.NormFloat64()
			row[j] = float32(size[j] * (last + common) / math.Sqrt(float64(tokens)))
		}
	}
	h := sgemm.Dense(k, k, nil)
	if err := sgemm.Mul(context.Background(), h, x, x, sgemm.Op{TransA: true}); err != nil {
		panic(err)
	}
	return h
}

// risingRates returns 0.3 for a power of two, 1 for all significant bits, and 0.1 for zero.
func risingRates(f weights.Format) Rates {
	r := Rates{Significant: []float64{0.1}}
	for b := 1; b <= f.MantBits+1; b++ {
		r.Significant = append(r.Significant, 0.3+0.7*float64(b-1)/float64(max(f.MantBits, 1)))
	}
	return r
}

// must returns a function that returns v, and fails the test if err is not nil.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// trace returns tr(e h eᵀ) in float64, with damp added to h's diagonal.
func trace(e, h sgemm.Matrix, damp float64) (sum float64) {
	for n := range e.Rows {
		row := e.Row(n)
		for i, a := range row {
			part := damp * float64(a)
			for j, v := range h.Row(i) {
				part += float64(v) * float64(row[j])
			}
			sum += float64(a) * part
		}
	}
	return sum
}

func sameBits(a, b sgemm.Matrix) bool {
	for i, v := range a.Data {
		if math.Float32bits(v) != math.Float32bits(b.Data[i]) {
			return false
		}
	}
	return len(a.Data) == len(b.Data)
}
