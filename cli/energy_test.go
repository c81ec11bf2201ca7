package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
)

func estimate(relative float64) cost.Estimate {
	return cost.Estimate{Relative: relative, Interval: [2]float64{relative - 0.035, relative + 0.035}, Calibration: "test"}
}

// Layers count by their weights; what the ratio can be wrong by is never more than what changed.
func TestRatio(t *testing.T) {
	var r ratio
	if r.known() != nil {
		t.Error("nothing was added, and something is known")
	}
	r.add(0, estimate(1), estimate(0.5)) // an empty tensor
	if r.known() != nil {
		t.Error("an empty tensor was added, and something is known")
	}
	r.add(300, estimate(1), estimate(0.9))
	r.add(100, estimate(1), estimate(0.99))
	want := ratio{Relative: 0.9225, Interval: [2]float64{0.89375, 0.95125}}
	close := func(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }
	if !close(r.Relative, want.Relative) || !close(r.Interval[0], want.Interval[0]) || !close(r.Interval[1], want.Interval[1]) {
		t.Errorf("%v %v, want %v %v", r.Relative, r.Interval, want.Relative, want.Interval)
	}
	var text strings.Builder
	if err := json.NewEncoder(&text).Encode(r.known()); err != nil {
		t.Error(err)
	}
}

// TestUnknownRatio is shown as such, not as no change.
func TestUnknownRatio(t *testing.T) {
	if have := new(ratio).change(); have != "–" {
		t.Error(have)
	}
}
