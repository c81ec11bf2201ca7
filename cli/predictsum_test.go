package cli

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// TestSum: layers count by their energy where it is known of all, else by their operations.
func TestSum(t *testing.T) {
	known := func(n int, relative, joules, seconds, clock float64) part {
		return part{"l", gemm.Problem{M: 1, N: n, K: 1, Type: gemm.BF16}, cost.Prediction{Relative: relative, Interval: [2]float64{relative - 0.1, relative + 0.2},
			RelativeTime: 2 * relative, SamplingError: relative, Joules: &joules, Seconds: &seconds, Watts: new(joules / seconds), Clock: &clock, Calibration: "c", Warnings: []string{"w"}}}
	}
	near := func(what string, have, want float64) {
		t.Helper()
		if math.Abs(have-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, have, want)
		}
	}
	a, b := known(1, 0.5, 1, 2, 1000), known(9, 0.8, 4, 3, 1500)
	s := sumOf([]part{a, b})
	near("energy", s.Relative, 5./(1/0.5+4/0.8))
	near("lower end", s.Interval[0], s.Relative-0.1)
	near("upper end", s.Interval[1], s.Relative+0.2)
	near("sampling error", s.SamplingError, math.Hypot(2*0.5, 5*0.8)/7)
	near("time", s.RelativeTime, 5./(2/1.+3/1.6))
	near("joules", *s.Joules, 5)
	near("seconds", *s.Seconds, 5)
	near("watts", *s.Watts, 1)
	near("clock", *s.Clock, 1300)
	if s.Calibration != "c" || len(s.Warnings) != 1 {
		t.Errorf("%+v", s)
	}
	b.Joules, b.Watts, b.Clock = nil, nil, nil
	s = sumOf([]part{a, b})
	near("energy by operations", s.Relative, 0.1*0.5+0.9*0.8)
	near("time by seconds", s.RelativeTime, 5./(2/1.+3/1.6))
	if s.Joules != nil || s.Watts != nil || s.Clock != nil || *s.Seconds != 5 {
		t.Errorf("what is not known of one is known of all: %+v", s)
	}
}
