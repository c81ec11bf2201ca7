package reference

import (
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// alibiSlopes returns the slope of each head: the decrease of its scores per position of distance. The largest power
// of two of heads has a geometric series. The other heads take every second slope of the next finer series.
func alibiSlopes(heads int) []float64 {
	whole := 1
	for 2*whole <= heads {
		whole *= 2
	}
	slopes := make([]float64, heads)
	for n := range slopes {
		power := 8 / float64(whole) * float64(n+1)
		if n >= whole {
			power = 4 / float64(whole) * float64(2*(n-whole)+1)
		}
		slopes[n] = math.Pow(2, -power)
	}
	return slopes
}

// bf16 rounds to the nearest BF16 value.
func bf16(x float64) float64 {
	f, _ := weights.BF16.Format()
	return float64(f.Value(f.FromValue(float32(x))))
}
