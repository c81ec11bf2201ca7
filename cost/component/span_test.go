package component

import (
	"math"
	"slices"
	"testing"
)

// TestSpanMeans: the means cover all kernels, computed by hand.
func TestSpanMeans(t *testing.T) {
	var s Span
	for _, k := range []struct{ watts, predicted, naive float64 }{{200, 210, 100}, {400, 380, 400}, {100, 112, 150}} {
		s.add(&Prediction{Reading: Reading{Watts: k.watts}, Predicted: Split{Watts: k.predicted}, Naive: []float64{k.naive, k.watts}})
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("mean", s.Mean, (0.05+0.05+0.12)/3)
	near("worst", s.Worst, 0.12)
	near("naive", s.Naive[0], (0.5+0+0.5)/3)
	near("another", s.Naive[1], 0)
	if s.Kernels != 3 || s.Least != 100 || s.Most != 400 {
		t.Errorf("%+v", s)
	}
	if best := s.BestNaive(); best != slices.Min(s.Naive[:min(mustBeat, 2)]) {
		t.Errorf("best of %v is %v", s.Naive, best)
	}
}

// TestChange: ratios are formatted as changes with their sign, and small changes as none.
func TestChange(t *testing.T) {
	for ratio, want := range map[float64]string{1: "0.0 %", 1.0004: "0.0 %", 0.9996: "0.0 %", 1.0006: "+0.1 %", 0.9994: "−0.1 %", 1.25: "+25.0 %", 0.5: "−50.0 %", 3: "+200.0 %"} {
		if got := change(ratio); got != want {
			t.Errorf("%v: %q, want %q", ratio, got, want)
		}
	}
}
