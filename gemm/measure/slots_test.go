package measure

import (
	"math"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestSlotsRemoveAddresses: an effect of the addresses biases candidates that keep their own memory, but not candidates
// measured in the same slots.
func TestSlotsRemoveAddresses(t *testing.T) {
	base, variants := pair()
	o := power.DefaultSim()
	o.Addresses, o.PowerNoise, o.Leakage = 0.02, 0.0005, 0
	run := func(slots int) *Result {
		t.Helper()
		r, err := Compare(t.Context(), Simulated(o), base, variants, Options{Slots: slots, Meter: power.Options{Time: 30 * time.Second, Precision: 1e-6}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	truth := simStill / (simStill + simToggling*naiveToggling(base.Products[0].W))
	off := func(r *Result) float64 {
		return max(math.Abs(r.Null.RelativeEnergy-1), math.Abs(r.Variants[0].RelativeEnergy/truth-1))
	}
	if own := run(0); off(own) < 0.015 {
		t.Fatalf("in its own memory the copy is off by %v, zeros are %v: this test tests nothing", own.Null.RelativeEnergy-1, own.Variants[0].RelativeEnergy)
	}
	r := run(2)
	if off(r) > 0.003 || len(r.Warnings) > 0 || len(r.Blocks) < 3 || r.Blocks[0].Arrangement == r.Blocks[1].Arrangement {
		t.Errorf("the copy is off by %v, zeros are %v, want %v; %d blocks, warnings %q", r.Null.RelativeEnergy-1, r.Variants[0].RelativeEnergy, truth, len(r.Blocks), r.Warnings)
	}
	low, high := math.Inf(1), 0.0
	for slot := range 2 { // the slots differ, so the copies went there
		sum := 0.0
		for _, w := range r.Blocks[slot].Windows {
			if w.Load == base.Name {
				sum += w.Watts / 2
			}
		}
		low, high = min(low, sum), max(high, sum)
	}
	if high/low < 1.01 {
		t.Errorf("both slots take the same power, %v and %v W", low, high)
	}
}
