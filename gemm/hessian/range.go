package hessian

import (
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Range is the range of a layer's inputs, over all tokens and channels.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	RMS float64 `json:"rms"` // root of the mean square
}

// extremes returns the smallest and the largest element of x, both NaN if an element is.
func extremes(x sgemm.Matrix, workers int) (low, high float32) {
	lows, highs := make([]float32, x.Rows), make([]float32, x.Rows)
	parallel.Do(x.Rows, workers, func(i int) {
		row := x.Row(i)
		l, h := row[0], row[0]
		for _, v := range row {
			l, h = min(l, v), max(h, v)
		}
		lows[i], highs[i] = l, h
	})
	low, high = float32(math.Inf(1)), float32(math.Inf(-1))
	for i := range lows {
		low, high = min(low, lows[i]), max(high, highs[i])
	}
	return low, high
}

// finite is false for NaN and infinities.
func finite[T float32 | float64](v T) bool { return v-v == 0 }
