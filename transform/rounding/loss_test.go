package rounding_test

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// TestScaleOfALoss: an error power of the signal's share of one weight becomes 1, and without a signal there is no scale.
func TestScaleOfALoss(t *testing.T) {
	for signal, want := range map[float64]float64{0: 0, -1: 0, math.NaN(): 0, 0.25: 16, 1: 4, 8: 0.5} {
		if got := (rounding.Loss{Signal: signal}).Scale(4); got != want {
			t.Errorf("signal %v: %v, want %v", signal, got, want)
		}
	}
}
