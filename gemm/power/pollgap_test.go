package power

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestPollGap: the estimate follows the usual gap from any first one, and single long gaps are late.
func TestPollGap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, first := range []time.Duration{10 * time.Microsecond, 5 * time.Millisecond, time.Second} {
		for _, usual := range []time.Duration{100 * time.Microsecond, 9 * time.Millisecond} {
			var g pollGap
			g.add(first)
			for range 150 {
				gap := time.Duration((0.5 + r.Float64()) * float64(usual))
				if r.IntN(20) == 0 {
					gap = 100 * time.Millisecond
				}
				g.add(gap)
			}
			if late := g.late(); late < 3*usual+time.Millisecond || late > 6*usual+time.Millisecond {
				t.Errorf("first %v, usually %v: late after %v", first, usual, late)
			}
		}
	}
}
