package predict

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

func near(t *testing.T, what string, have, want float64) {
	t.Helper()
	if math.Abs(have-want) > 1e-12 {
		t.Errorf("%s is %v, want %v", what, have, want)
	}
}

// TestSum: layers count by their energy where it is known of all, else by their operations.
func TestSum(t *testing.T) {
	known := func(n int, relative, joules, seconds, clock float64) Layer {
		return Layer{"l", gemm.Problem{M: 1, N: n, K: 1, Type: arith.BF16}, cost.Prediction{Relative: relative, Interval: [2]float64{relative - 0.1, relative + 0.2},
			RelativeTime: 2 * relative, SamplingError: relative, Joules: &joules, Seconds: &seconds, Watts: new(joules / seconds), Clock: &clock, Calibration: "c", Warnings: []string{"w"}}}
	}
	a, b := known(1, 0.5, 1, 2, 1000), known(9, 0.8, 4, 3, 1500)
	s := sum([]Layer{a, b})
	near(t, "energy", s.Relative, 5./(1/0.5+4/0.8))
	near(t, "lower end", s.Interval[0], s.Relative-0.1)
	near(t, "upper end", s.Interval[1], s.Relative+0.2)
	near(t, "sampling error", s.SamplingError, math.Hypot(2*0.5, 5*0.8)/7)
	near(t, "time", s.RelativeTime, 5./(2/1.+3/1.6))
	near(t, "joules", *s.Joules, 5)
	near(t, "seconds", *s.Seconds, 5)
	near(t, "watts", *s.Watts, 1)
	near(t, "clock", *s.Clock, 1300)
	if s.Calibration != "c" || len(s.Warnings) != 1 {
		t.Errorf("%+v", s)
	}
	b.Joules, b.Watts, b.Clock = nil, nil, nil
	s = sum([]Layer{a, b})
	near(t, "energy by operations", s.Relative, 0.1*0.5+0.9*0.8)
	near(t, "time by seconds", s.RelativeTime, 5./(2/1.+3/1.6))
	if s.Joules != nil || s.Watts != nil || s.Clock != nil || *s.Seconds != 5 {
		t.Errorf("a figure that is not known of one layer is known of all: %+v", s)
	}
}

// TestRatio: layers count by their number of weights, and the ratio's error is never larger than the change.
func TestRatio(t *testing.T) {
	estimate := func(relative float64) cost.Estimate {
		return cost.Estimate{Relative: relative, Interval: [2]float64{relative - 0.035, relative + 0.035}, Calibration: "test"}
	}
	var r Ratio
	if r.Known() != nil {
		t.Error("nothing was added, and something is known")
	}
	r.Add(0, estimate(1), estimate(0.5)) // an empty tensor
	if r.Known() != nil {
		t.Error("an empty tensor was added, and something is known")
	}
	r.Add(300, estimate(1), estimate(0.9))
	r.Add(100, estimate(1), estimate(0.99))
	near(t, "energy", r.Relative, 0.9225)
	near(t, "lower end", r.Interval[0], 0.89375)
	near(t, "upper end", r.Interval[1], 0.95125)
	var text strings.Builder
	if err := json.NewEncoder(&text).Encode(r.Known()); err != nil {
		t.Error(err)
	}
}
