package rounding

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestNearestOfBook: Nearest finds the value that a search of the book finds, for numbers of every size and near the
// bounds, for any zero point.
func TestNearestOfBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, _, _ := drawBook(t)
		if rapid.Bool().Draw(t, "few") { // far apart
			b = NewCodeBook([]float32{-6, 6, 1e30}[:rapid.IntRange(1, 3).Draw(t, "values")], nil)
		}
		var near Nearest
		for range 2 {
			zero := rapid.SampledFrom([]float32{-3, 0, 2.5, 8, 300}).Draw(t, "zero")
			near.Take(b, zero)
			check := func(x float32) {
				want := b.nearest(x, zero)
				if got := near.number(x); got != want {
					t.Fatalf("%g: value %d, want %d", x, got, want)
				}
				d := float64(x - b.values[want])
				if got := near.Squares([]Sample{{x - zero, 2}}, 1, math.Inf(1)); x-zero+zero == x && got != 2*float64(float32(d)*float32(d)) {
					t.Fatalf("%g: squared error %g, and the nearest value is %g", x, got, b.values[want])
				}
			}
			inf := float32(math.Inf(1))
			for _, x := range []float32{0, float32(math.Copysign(0, -1)), inf, -inf, inf - inf, math.MaxFloat32, 1e-45, -1e-45} {
				check(x)
			}
			for range 100 {
				check(float32(rapid.Float64Range(-500, 500).Draw(t, "x")))
				check(math.Float32frombits(rapid.Uint32Range(0, 0x7F7FFFFF).Draw(t, "positive")))
				check(-math.Float32frombits(rapid.Uint32Range(0, 0x7F7FFFFF).Draw(t, "negative")))
			}
			for i := 1; i < len(b.values); i++ {
				lo, hi := b.values[i-1], b.values[i]
				x := lo + (hi-lo)/2
				below := math.Nextafter32(x, lo)
				for _, x := range []float32{lo, hi, x, below, math.Nextafter32(below, lo), math.Nextafter32(x, hi), math.Nextafter32(math.Nextafter32(x, hi), hi)} {
					check(x)
				}
			}
		}
	})
}

func BenchmarkNearest(b *testing.B) {
	fp8, ints := make([]float32, 127), make([]float32, 16)
	for c := range fp8 {
		exp, mant := c>>3, c&7
		if fp8[c] = float32(math.Ldexp(float64(mant), -9)); exp > 0 {
			fp8[c] = float32(math.Ldexp(float64(8+mant), exp-10))
		}
	}
	for c := range ints {
		ints[c] = float32(c)
	}
	random := make([]float32, 1<<16)
	for i := range random {
		random[i] = 16 * rand.Float32()
	}
	for _, c := range []struct {
		name   string
		values []float32
	}{{"int4", ints}, {"fp4", []float32{-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}}, {"fp8", fp8}} {
		book := NewCodeBook(c.values, nil)
		b.Run(c.name+"/search", func(b *testing.B) {
			for i := range b.N {
				book.nearest(random[i%len(random)], 8)
			}
		})
		b.Run(c.name+"/table", func(b *testing.B) {
			var near Nearest
			near.Take(book, 8)
			for i := range b.N {
				near.number(random[i%len(random)])
			}
		})
	}
}
