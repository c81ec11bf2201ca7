package power

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMargin(t *testing.T) {
	for s, want := range map[float64]float64{25e-6: 0.05, 200e-6: 0.05, 201e-6: 0.02, 1: 0.02} {
		if got := Margin(s); got != want {
			t.Errorf("Margin(%v) = %v, want %v", s, got, want)
		}
	}
}

func TestMainBin(t *testing.T) {
	b := MainBin([]float64{1.5, 1.010, 1.005, 1.02, 1.3, 1.001, 0.9, 1.031})
	for s, want := range map[float64]bool{1.001: true, 1.005: true, 1.02: true, 0.9: false, 1.031: false, 1.5: false} {
		if b.Holds(s) != want {
			t.Errorf("%v in %v: %v", s, b, !want)
		}
	}
	if (Bin{}) != MainBin(nil) {
		t.Error("no times make a bin")
	}
}

// TestMainBinIsFullest: the bin's times are within the margin of each other, and no other bin has more.
func TestMainBinIsFullest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Float64Range(0.9e-3, 1.1e-3), 1, 40).Draw(t, "times")
		inside := func(b Bin) (in []float64) {
			for _, s := range times {
				if b.Holds(s) {
					in = append(in, s)
				}
			}
			return
		}
		main := inside(MainBin(times))
		if len(main) == 0 || slices.Max(main) > slices.Min(main)*(1+Margin(slices.Min(main))) {
			t.Fatalf("bin %v of %v", main, times)
		}
		for _, s := range times {
			if other := inside(Bin{s, s * (1 + Margin(s))}); len(other) > len(main) {
				t.Fatalf("%d in the bin from %v, %d in the main one", len(other), s, len(main))
			}
		}
	})
}
