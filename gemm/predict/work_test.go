package predict_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// raw hides that a calibration knows the shape's work.
type raw struct{ predict.Predictor }

// TestOwnShape: time, power and clock are those of the product's own shape, as at the calibration's own setting. The
// energy and what is relative to random operands are those of the calibration alone.
func TestOwnShape(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	for _, c := range []struct {
		what         string
		cold         bool
		tokens, n, k int
		same         bool // the shape was measured
	}{
		{"measured, decode", true, 16, 8192, 8192, true}, {"measured, prefill", false, 8192, 8192, 8192, true},
		{"small, decode", true, 16, 768, 256, false}, {"small, prefill", false, 8192, 768, 256, false},
	} {
		o := predict.Options{Cold: c.cold, Operands: operand.Options{Tokens: c.tokens, N: c.n, K: c.k, Type: arith.BF16}}
		source := []operand.Source{operand.MustParse("normal(0,0.02)")}
		r, err := predict.Sources(t.Context(), h200, source, o)
		testmodel.OK(t, err)
		nearest, err := predict.Sources(t.Context(), raw{h200}, source, o)
		testmodel.OK(t, err)
		have, was := r.Predictions[0], nearest.Predictions[0]
		if have.Relative != was.Relative || have.Interval != was.Interval || *have.Joules != *was.Joules || have.RelativeTime != was.RelativeTime {
			t.Errorf("%s: energy %+v, by the calibration %+v", c.what, have.Prediction, was.Prediction)
		}
		work, err := have.Work()
		testmodel.OK(t, err)
		at, err := h200.AtSetting(work, cost.Setting{})
		testmodel.OK(t, err)
		near := func(what string, have, want, within float64) {
			t.Helper()
			if math.Abs(have/want-1) > within {
				t.Errorf("%s: %s is %v, want %v", c.what, what, have, want)
			}
		}
		near("joules", *have.Joules, at.Joules, 1e-9)
		near("seconds", *have.Seconds, at.Seconds, 1e-9)
		near("watts", *have.Watts, at.Watts, 1e-9)
		near("clock", *have.Clock, at.Clock, 1e-9)
		near("power times time", *have.Watts**have.Seconds, *have.Joules, 1e-9)
		if c.same {
			near("watts", *have.Watts, *was.Watts, 0.01)
			near("clock", *have.Clock, *was.Clock, 0.01)
		} else if *have.Watts > 0.9**was.Watts && *have.Clock < 1.1**was.Clock {
			t.Errorf("%s: %v W and %v MHz are those of the measured shape", c.what, *have.Watts, *have.Clock)
		}
		if b := have.BelowCap; b != nil && (b.Clock < *have.Clock || b.Clock > 1980) {
			t.Errorf("%s: %v MHz below the cap, and %v at the cap", c.what, b.Clock, *have.Clock)
		}
	}
}

// TestOwnShapeBelowCap: below the power cap, too, the clock is that of the product's own shape. At its highest clock a product
// cannot save time.
func TestOwnShapeBelowCap(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	ratio := h200.Facts.Power.Bursts.Usual
	_, highest := h200.Reach()
	reached := 0
	for _, k := range []int{512, 1024, 2048, 4096, 8192} {
		o := predict.Options{Operands: operand.Options{Tokens: 8192, N: 8192, K: k, Type: arith.BF16}}
		r, err := predict.Sources(t.Context(), h200, []operand.Source{operand.MustParse("normal(0,0.02)"), operand.MustParse("normal(0,0.02) | grid(4)")}, o)
		testmodel.OK(t, err)
		random, grid := r.Predictions[0].Layers[0], r.Predictions[1].Layers[0]
		if want := min(ratio**random.Clock, highest.Clock); math.Abs(random.BelowCap.Clock/want-1) > 0.01 {
			t.Errorf("K %d: random weights at %.0f MHz, want %.0f", k, random.BelowCap.Clock, want)
		}
		time := grid.BelowCap.RelativeTime
		if full := random.BelowCap.Clock / grid.BelowCap.Clock; time < full-1e-3 || full == 1 && time != 1 {
			t.Errorf("K %d: time %.4f below the cap, and clocks give %.4f", k, time, full)
		}
		if random.BelowCap.Clock > 0.999*highest.Clock {
			reached++
			if grid.BelowCap.Relative > grid.Relative {
				t.Errorf("K %d: energy %.4f below the cap, and %.4f at it: at a fixed clock less is spent", k, grid.BelowCap.Relative, grid.Relative)
			}
		}
	}
	if reached == 0 {
		t.Error("no product reached the highest clock")
	}
}

// TestNoWork: a type without figures of its own keeps them unknown, and its work is an error that names the layer.
func TestNoWork(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	r, err := predict.Sources(t.Context(), h200, []operand.Source{operand.MustParse("zeros")},
		predict.Options{Cold: true, Operands: operand.Options{Tokens: 16, N: 64, K: 64, Type: arith.INT8}})
	testmodel.OK(t, err)
	p := r.Predictions[0]
	if p.Seconds != nil || p.Watts != nil || p.Clock != nil {
		t.Errorf("%+v", p)
	}
	if _, err := p.Work(); err == nil || !strings.Contains(err.Error(), "the prediction has no power or no time") {
		t.Error(err)
	}
}

// TestOtherBatches: decode with another number of tokens than the measured one is flagged, and so are numbers at which reading the
// weights no longer bounds the products. The prediction stays.
func TestOtherBatches(t *testing.T) {
	h200, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	for tokens, want := range map[int]string{1: "for decode with 16 tokens, as measured, not with 1:", 8: "for decode with 16 tokens, as measured, not with 8:", 12: "", 16: "", 24: "", 64: "with 16 tokens, as measured, not with 64:",
		256: "with 16 tokens, as measured, not with 256:", 257: "257 tokens are too many"} {
		for _, of := range []arith.Type{arith.BF16, arith.INT8} {
			r, err := predict.Sources(t.Context(), h200, []operand.Source{operand.MustParse("zeros")},
				predict.Options{Cold: true, Operands: operand.Options{Tokens: tokens, N: 8192, K: 8192, Type: of}})
			testmodel.OK(t, err)
			text := strings.Join(r.Warnings(), "\n")
			if !strings.Contains(text, want) || strings.Contains(text, "#other-batch-sizes") != (want != "") {
				t.Errorf("%v, %d tokens: %q", of, tokens, text)
			}
		}
	}
	r, err := predict.Sources(t.Context(), h200, []operand.Source{operand.MustParse("zeros")}, predict.Options{Operands: operand.Options{Tokens: 64, N: 8192, K: 8192}})
	testmodel.OK(t, err)
	if text := strings.Join(r.Warnings(), "\n"); strings.Contains(text, "other-batch-sizes") {
		t.Errorf("prefill: %q", text)
	}
}
