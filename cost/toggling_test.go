package cost

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestToggling: random operands toggle at the unit rate, constants do not toggle, and a byte of BF16 toggles less
// than a byte of FP8, whose bits are all mantissa.
func TestToggling(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	const size = 512
	of := func(typ arith.Type, d weights.DType, sigma, w float64, cold bool) (bits, moved float64) {
		t.Helper()
		p := Product{Type: typ, M: size, N: size, K: size, Cold: cold}
		if cold {
			p.M = 16
		}
		bits, moved, err := c.Toggling(t.Context(), p, randomOperand(d, p.M, p.K, sigma, 2), randomOperand(d, p.N, p.K, w, 3))
		if err != nil {
			t.Fatal(err)
		}
		return bits, moved
	}
	for _, cold := range []bool{false, true} {
		bits, bf16 := of(arith.BF16, weights.BF16, 1, 1, cold)
		if math.Abs(bits-1) > 0.03 || bf16 < 0.6 || bf16 > 0.8 {
			t.Errorf("cold %v: random operands in BF16 toggle %.3f, and %.3f on their way", cold, bits, bf16)
		}
		if _, fp8 := of(arith.FP8, weights.F8E4M3, 16, 16, cold); fp8 <= bf16 || fp8 > 1 {
			t.Errorf("cold %v: a byte of FP8 toggles %.3f, of BF16 %.3f", cold, fp8, bf16)
		}
		quiet, still := of(arith.BF16, weights.BF16, 1, 0, cold)
		if quiet >= bits-0.2 || still >= 0.6*bf16 {
			t.Errorf("cold %v: with weights of zero %.3f of %.3f, on their way %.3f of %.3f", cold, quiet, bits, still, bf16)
		}
	}
	if bits, moved := of(arith.TF32, weights.F32, 1, 1, false); math.Abs(bits-1) > 0.05 || !(moved > 0.5 && moved < 1.1) {
		t.Errorf("random operands of an uncalibrated type: %.3f and %.3f", bits, moved)
	}
	if bits, moved, err := c.Toggling(t.Context(), Product{Type: arith.BF16, M: 1, N: 1, K: 1}, randomOperand(weights.BF16, 1, 1, 1, 2), randomOperand(weights.BF16, 1, 1, 1, 3)); err != nil || bits-bits != 0 || moved-moved != 0 {
		t.Errorf("one element: %v, %v, %v", bits, moved, err)
	}
	if _, _, err := c.Toggling(t.Context(), Product{M: 1, N: 1, K: 1}, nil, nil); err == nil {
		t.Error("an unknown type toggles")
	}
}
