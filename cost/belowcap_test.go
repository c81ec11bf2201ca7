package cost_test

import (
	"context"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// lazily returns an operand of a pattern. Only sampled parts are generated.
func lazily(text string, rows, k int, seed uint64) cost.Operand {
	p, s := pattern.MustParse(text), pattern.Spec{DType: weights.BF16, Rows: rows, Cols: k, Seed: seed}
	return func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		return p.Block(ctx, s, pattern.Range{From: row, To: row + rows}, pattern.Range{From: col, To: col + cols})
	}
}

// predictBF16 predicts a product of random x with weights of a pattern.
func predictBF16(t *testing.T, c *cost.Calibration, p cost.Product, weights string) cost.Prediction {
	t.Helper()
	p.Type = arith.BF16
	r, err := c.Predict(t.Context(), p, lazily("normal(0,1)", p.M, p.K, 2), lazily(weights, p.N, p.K, 3))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func h200(t *testing.T) *cost.Calibration {
	t.Helper()
	c, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBelowCapAgainstFirstReadings uses the first readings of bursts of 8192³ at 265 to 474 W on average (one H200,
// one day): energy and time relative to random weights, each the median of the readings at four duties. Copies were
// within ±1.5 % in energy and ±0.7 % in time.
func TestBelowCapAgainstFirstReadings(t *testing.T) {
	c := h200(t)
	for _, read := range []struct {
		weights      string
		energy, time float64
	}{
		{"normal(0,0.02) | round(4)", 0.9665, 0.9725},
		{"normal(0,0.02) | grid(4)", 0.948, 0.9615},
		{"normal(0,0.02) | grid(2)", 0.9445, 0.9505},
		{"const(0.02)", 0.9505, 0.949},
		{"zeros", 0.6835, 0.8775},
	} {
		b := predictBF16(t, c, cost.Product{M: 8192, N: 8192, K: 8192}, read.weights).BelowCap
		t.Logf("%s: energy %.4f, read %.4f; time %.4f, read %.4f; %.0f MHz", read.weights, b.Relative, read.energy, b.RelativeTime, read.time, b.Clock)
		if math.Abs(b.Relative-read.energy) > 0.015 || math.Abs(b.RelativeTime-read.time) > 0.012 {
			t.Errorf("%s: energy %.4f and time %.4f, read %.4f and %.4f", read.weights, b.Relative, b.RelativeTime, read.energy, read.time)
		}
	}
}

// TestBelowCap: below the cap, the clock of all work is higher by one factor, but at most the highest clock.
func TestBelowCap(t *testing.T) {
	c, p := h200(t), cost.Product{M: 8192, N: 8192, K: 8192}
	random, rounded, zeros := predictBF16(t, c, p, "normal(0,0.02)"), predictBF16(t, c, p, "normal(0,0.02) | round(4)"), predictBF16(t, c, p, "zeros")
	ratio := c.Facts.Power.Bursts.Usual
	if got := random.BelowCap.Clock / *random.Clock; math.Abs(got/ratio-1) > 0.005 {
		t.Errorf("random weights run %.4f times as fast, want %.4f", got, ratio)
	}
	if b := rounded.BelowCap; math.Abs(b.RelativeTime-rounded.RelativeTime) > 0.005 || math.Abs(b.Relative-b.RelativeTime) > 1e-3 {
		t.Errorf("rounded weights: %+v, at the cap %.4f; both limits are of power, so energy and time change alike", b, rounded.RelativeTime)
	}
	if b := zeros.BelowCap; b.Clock > 1981 || b.Clock < 1975 || b.Relative > b.RelativeTime-0.1 {
		t.Errorf("zeros %+v: want the highest clock, and less power", b)
	}

	half := func(interval []float64) float64 { return (interval[1] - interval[0]) / 2 }
	if b := rounded.BelowCap; half(b.Interval) < (rounded.Interval[1]-rounded.Interval[0])/2-1e-9 || half(b.TimeInterval) < 0.005 || half(b.Interval) > 0.03 {
		t.Errorf("%+v, at the cap %v: below the cap the ranges of the facts add to the interval", b, rounded.Interval)
	}
	wide := *c.Facts.Power.Bursts
	wide.Low, wide.High = wide.Low-0.3, wide.High+0.3
	wider := cost.Calibration{Card: c.Card, Facts: c.Facts, Models: c.Models, Series: c.Series, PowerLimit: c.PowerLimit}
	wider.Facts.Power.Bursts = &wide
	if b := predictBF16(t, &wider, p, "zeros").BelowCap; half(b.TimeInterval) < half(zeros.BelowCap.TimeInterval)+0.02 {
		t.Errorf("less certain ratio of clocks: time ± %.4f, before ± %.4f", half(b.TimeInterval), half(zeros.BelowCap.TimeInterval))
	}

	if b := predictBF16(t, c, cost.Product{M: 16, N: 8192, K: 8192, Cold: true}, "zeros").BelowCap; b != nil {
		t.Errorf("with weights from memory: %+v", b)
	}
	if r := predictBF16(t, c, cost.Product{M: 1024, N: 1024, K: 1024}, "zeros"); r.BelowCap.Relative != r.Relative || r.BelowCap.RelativeTime != r.RelativeTime {
		t.Errorf("shape below the cap: %+v, %+v", r.BelowCap, r)
	}
	facts := c.Facts
	facts.Power.Bursts = nil
	unknown := cost.Calibration{Card: c.Card, Facts: facts, Models: c.Models, Series: c.Series}
	if b := predictBF16(t, &unknown, p, "zeros").BelowCap; b != nil {
		t.Errorf("on a card without the fact: %+v", b)
	}
}
