package cost_test

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestScaled: a kernel's shares scale the saving of a product with one scale. All-zero weights also save the sums.
func TestScaled(t *testing.T) {
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	const n, k = 4096, 4096
	d := weights.F8E4M3
	x, zero, coarse := drawnOperand(t, "normal(0,16)", d, n, k), drawnOperand(t, "zeros", d, n, k), drawnOperand(t, "normal(0,16) | round(4)", d, n, k)
	// energy is relative to the calibration's baseline, which is 1 for every kernel.
	energy := func(p cost.Product, w cost.Operand) float64 {
		r, err := c.Predict(t.Context(), p, x, w)
		if err != nil {
			t.Fatal(err)
		}
		return *r.Joules
	}
	for _, p := range []cost.Product{{Type: arith.FP8, M: 4096, N: n, K: k}, {Type: arith.FP8, M: 16, N: n, K: k, Cold: true}} {
		one := p
		one.Scaling = "tensor"
		for per, s := range c.Facts.Kernels.Scaled {
			many := p
			many.Scaling = per
			share, sums := s.Operands, 0.0
			if p.Cold {
				share, sums = s.FewOperands, s.Sums
			}
			// Shares are relative to the same baseline, so differences between patterns scale.
			saved := energy(one, coarse) - energy(one, zero)
			unit := (energy(one, coarse) - energy(many, coarse)) / (share - 1) // baseline minus coarse
			baseline := energy(one, coarse) + unit
			if got, want := energy(many, coarse)-energy(many, zero), share*saved+sums*baseline; math.Abs(got/want-1) > 1e-6 {
				t.Errorf("%+v per %s: zeros save %v beside coarse weights, want %v", p, per, got, want)
			}
		}
	}
	// Weights of a format have the shares of the format's kernel.
	w := cost.Weights{DType: d, Rows: 64, Cols: k, Bands: []cost.Band{{Data: make([]byte, 64*k)}}}
	estimate := func(f *quant.Format) float64 {
		w.Format = f
		e, err := c.Energy(t.Context(), w, cost.Stationary, cost.Workload{Decode: 1})
		if err != nil {
			t.Fatal(err)
		}
		return e.Relative
	}
	plain, channel := estimate(nil), estimate(&quant.Format{Codes: "fp8", Per: "channel"})
	if got, want := 1-channel, c.Facts.Kernels.Scaled["channel"].FewOperands*(1-plain); math.Abs(got/want-1) > 0.02 {
		t.Errorf("zeros per channel save %v, want %v", got, want)
	}
}
