package rounding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestVectorKernelHasTheBitsOfGo: for targets of every size and kind, in columns of every length, the kernel gives
// the bits of the Go code.
func TestVectorKernelHasTheBitsOfGo(t *testing.T) {
	if !vectors {
		t.Skip("this machine or build has no vector kernel")
	}
	r := rand.New(rand.NewPCG(31, 32))
	for _, dtype := range []weights.DType{weights.BF16, weights.F16, weights.F32} {
		f, _ := dtype.Format()
		for round := range 3000 {
			costs := make([]float64, f.MantBits+2)
			for b := range costs {
				costs[b] = r.Float64() / 4
				if b > 1 {
					costs[b] = max(costs[b], costs[b-1])
				}
				if round%5 == 0 {
					costs[b] = 0.5 // equal costs: the smaller value is chosen
				}
			}
			p := newPrices(Trellis{Format: f, Rates: Rates{Significant: costs}, Lambda: math.Exp2(float64(r.IntN(24) - 18)), Scale: 1})
			targets := make([]float32, round%70)
			for i := range targets {
				switch {
				case round%3 == 0 && r.IntN(20) == 0:
					targets[i] = math.Float32frombits(r.Uint32()&^(1<<30) | uint32(r.IntN(2))<<29) // finite, also very small
				case round%4 == 0:
					targets[i] = float32(math.Ldexp(float64(r.IntN(16)), r.IntN(9)-8)) // halfway between values
				default:
					targets[i] = float32(r.NormFloat64() * math.Exp2(float64(-r.IntN(14))))
				}
			}
			c := Column{D: math.Exp(r.NormFloat64() * 6), T: slices.Clone(targets)}
			if round%50 == 0 {
				c.D = 0
			}
			want := slices.Clone(targets)
			p.each(want, p.gain(c.D))
			p.column(c)
			for i := range want {
				if math.Float32bits(want[i]) != math.Float32bits(c.T[i]) {
					t.Fatalf("%s: of %g, number %d of %d, the kernel computes %g, Go %g", dtype, targets[i], i, len(want), c.T[i], want[i])
				}
			}
		}
	}
}

// TestVectorKernelStaysInside: targets before and after the column do not change.
func TestVectorKernelStaysInside(t *testing.T) {
	f, _ := weights.BF16.Format()
	p := newPrices(Trellis{Format: f, Rates: Rates{Significant: make([]float64, f.MantBits+2)}, Lambda: 1, Scale: 1})
	for n := range 50 {
		all := slices.Repeat([]float32{1.2345}, n+40)
		p.column(Column{D: 1, T: all[20 : 20+n]})
		for i, v := range all {
			if inside := i >= 20 && i < 20+n; inside == (v == 1.2345) {
				t.Fatalf("%d targets: element %d is %v", n, i-20, v)
			}
		}
	}
}
