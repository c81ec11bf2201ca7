package power

import "testing"

// TestHalfAtTheCapIsCapped: from half of the samples on, a load counts as capped.
func TestHalfAtTheCapIsCapped(t *testing.T) {
	for share, want := range map[float64]bool{0: false, 0.49: false, 0.5: true, 1: true} {
		if isCapped(share) != want {
			t.Errorf("a share of %v: %v", share, !want)
		}
	}
}
