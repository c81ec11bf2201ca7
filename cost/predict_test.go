package cost

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// predicted returns the H200 calibration's prediction for random x, and for weights with runs of equal rows.
func predicted(t *testing.T, p Product) (*Calibration, Prediction) {
	t.Helper()
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	random := func(text string, rows int, seed uint64) Operand {
		_, o := drawn(t, text, weights.BF16, rows, p.K, seed)
		return o
	}
	r, err := c.Predict(t.Context(), p, random("normal(0,1)", p.M, 2), random("normal(0,1) | repeat(rows=4)", p.N, 3))
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

// TestFarShapesAreWidened: if a shape has more than four times fewer results or inputs than all measured shapes, its
// interval is twice as wide, and a warning names the nearest shape.
func TestFarShapesAreWidened(t *testing.T) {
	for _, test := range []struct {
		p   Product
		far bool
	}{
		{Product{M: 512, N: 512, K: 1024}, false}, // 1024³ was measured
		{Product{M: 512, N: 480, K: 1024}, true},
		{Product{M: 1024, N: 1024, K: 256}, false},
		{Product{M: 1024, N: 1024, K: 240}, true},
		{Product{M: 16, N: 2048, K: 8192, Cold: true}, false}, // 16×8192×8192 was measured
		{Product{M: 16, N: 2000, K: 8192, Cold: true}, true},
	} {
		test.p.Type = arith.BF16
		c, r := predicted(t, test.p)
		want := math.Hypot(c.model(arith.BF16, test.p.Cold).Quality.HalfWidth(r.Relative), 1.96*r.SamplingError)
		warned := strings.Contains(strings.Join(r.Warnings, " "), "no product of about this shape was measured: ")
		if test.far {
			want *= 2
		}
		if half := (r.Interval[1] - r.Interval[0]) / 2; math.Abs(half-want) > 1e-9 || warned != test.far || len(r.Warnings) > 1 {
			t.Errorf("%+v: ± %v, want ± %v: %q", test.p, half, want, r.Warnings)
		}
	}
}

// TestHighestClock: noise of a response does not raise the clock above the card's highest clock.
func TestHighestClock(t *testing.T) {
	for _, side := range []int{3, 64, 1024} {
		c, r := predicted(t, Product{Type: arith.BF16, M: side, N: side, K: side})
		if most := c.Facts.Settings.HighestClock; *r.Clock > most || r.BelowCap.Clock > most || *r.Clock < most/2 {
			t.Errorf("%d³: %.0f MHz, and %.0f below the cap; the highest is %.0f", side, *r.Clock, r.BelowCap.Clock, most)
		}
	}
}

// TestTokensStream: with four times as many tokens as outputs, cuBLASLt streams the tokens, so runs of equal outputs
// save nothing in either role. Kernels of quantised layers stream the operand named in their sources.
func TestTokensStream(t *testing.T) {
	for _, test := range []struct {
		tokens int
		kernel Kernel
		stream bool
	}{{1024, "", false}, {1024, CuBLASLt, false}, {1024, CUTLASS, true}, {1016, "", true}} {
		p := Product{Type: arith.BF16, M: test.tokens, N: 256, K: 512, Kernel: test.kernel}
		_, stationary := predicted(t, p)
		p.Role = Streaming
		_, streaming := predicted(t, p)
		if saved := stationary.Relative - streaming.Relative; test.stream != (saved > 0.1) || !test.stream && saved != 0 {
			t.Errorf("%+v: the streaming weights save %v", p, saved)
		}
	}
}

// TestScaleBeyondTheType: an operand whose scale random operands cannot have is an error.
func TestScaleBeyondTheType(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	for typ, d := range map[arith.Type]weights.DType{arith.FP32: weights.F32, arith.BF16: weights.BF16} {
		_, x := drawn(t, "normal(0,1)", d, 64, 64, 1)
		_, w := drawn(t, "const(3.4028234e38)", d, 64, 64, 2)
		for _, o := range [][2]Operand{{x, w}, {w, x}} {
			if _, err := c.Predict(t.Context(), Product{Type: typ, M: 64, N: 64, K: 64}, o[0], o[1]); err == nil || !strings.Contains(err.Error(), "no random operand of equal scale fits float32") {
				t.Errorf("%v: %v", typ, err)
			}
		}
	}
}

// TestOperandsFail: an error of an operand's first or last block ends the prediction. The last block is read for the scale.
func TestOperandsFail(t *testing.T) {
	c, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	p := Product{Type: arith.BF16, M: 64, N: 64, K: 64}
	var calls, failing [2]int
	counted := func(i int) Operand {
		_, o := drawn(t, "normal(0,1)", weights.BF16, 64, 64, uint64(i))
		return func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
			if calls[i]++; calls[i] == failing[i] {
				return nil, broken
			}
			return o(ctx, row, rows, col, cols)
		}
	}
	x, w := counted(0), counted(1)
	if _, err := c.Predict(t.Context(), p, x, w); err != nil {
		t.Fatal(err)
	}
	all := calls
	for i := range all {
		for _, at := range []int{1, all[i]} {
			calls, failing = [2]int{}, [2]int{}
			failing[i] = at
			if _, err := c.Predict(t.Context(), p, x, w); !errors.Is(err, broken) {
				t.Errorf("operand %d fails at call %d of %d: %v", i, at, all[i], err)
			}
		}
	}
}

// TestUnmeasuredRoleAndPlace: a role without measurements gets a warning and twice the interval. A place of the
// weights without measurements is an error that names the measured places. An assumed clock is not predicted.
func TestUnmeasuredRoleAndPlace(t *testing.T) {
	h200, err := FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	part := func(keep func(Series) bool) *Calibration {
		c := &Calibration{Card: "mine", Facts: h200.Facts, Names: h200.Names}
		for _, s := range h200.Series {
			if s.Type == arith.BF16 && keep(s) {
				c.Series = append(c.Series, s)
			}
		}
		for _, m := range h200.Models {
			if m.Type == arith.BF16 && slices.ContainsFunc(c.Series, func(s Series) bool { return s.Cold == m.Cold }) {
				c.Models = append(c.Models, m)
			}
		}
		return c
	}
	p := Product{Type: arith.BF16, M: 512, N: 512, K: 512, Role: Streaming}
	_, x := drawn(t, "normal(0,1)", weights.BF16, 512, 512, 2)
	_, w := drawn(t, "normal(0,1) | round(4)", weights.BF16, 512, 512, 3)
	predict := func(c *Calibration, p Product) (Prediction, error) { return c.Predict(t.Context(), p, x, w) }

	one := part(func(s Series) bool { return !s.Cold && s.Role == Stationary && s.N == 1024 })
	r, err := predict(one, p)
	half, want := (r.Interval[1]-r.Interval[0])/2, 2*math.Hypot(one.Models[0].Quality.HalfWidth(r.Relative), 1.96*r.SamplingError)
	if err != nil || len(r.Warnings) != 1 || math.Abs(half-want) > 1e-9 ||
		r.Warnings[0] != "for bf16 with weights on chip (prefill), no streaming weights were measured: the prediction uses measurements of stationary weights, with a wider interval" {
		t.Errorf("± %v, want ± %v: %q (%v)", half, want, r.Warnings, err)
	}
	if r.Clock == nil || r.BelowCap == nil {
		t.Error("a measured clock is not predicted")
	}
	if p.Role = Stationary; err == nil {
		if r, err = predict(one, p); err != nil || len(r.Warnings) > 0 {
			t.Errorf("measured role: %q (%v)", r.Warnings, err)
		}
	}

	one.Series[0].Baseline.ClockAssumed = true
	if r, err = predict(one, p); err != nil || r.Clock != nil || r.BelowCap != nil || r.Watts == nil {
		t.Errorf("an assumed clock: %+v (%v)", r, err)
	}
	if _, err = one.Work(p, r, 1); err == nil || !strings.Contains(err.Error(), "the calibration of mine has no clocks: measure clocks") {
		t.Error(err)
	}
	p.M, p.Cold = 16, true
	if _, err := predict(one, p); err == nil || err.Error() != "the calibration of mine has no measurements of bf16 with weights from memory (decode), "+
		"only of bf16 with weights on chip (prefill): choose another type, or fit a calibration to a table with the missing measurements (docs/own-card.md)" {
		t.Error(err)
	}
}
