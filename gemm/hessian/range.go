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
		var l, h [4]float32 // four at a time, so that comparisons overlap
		for i := range l {
			l[i], h[i] = row[0], row[0]
		}
		for len(row) >= 4 {
			l[0], h[0] = min(l[0], row[0]), max(h[0], row[0])
			l[1], h[1] = min(l[1], row[1]), max(h[1], row[1])
			l[2], h[2] = min(l[2], row[2]), max(h[2], row[2])
			l[3], h[3] = min(l[3], row[3]), max(h[3], row[3])
			row = row[4:]
		}
		for _, v := range row {
			l[0], h[0] = min(l[0], v), max(h[0], v)
		}
		lows[i], highs[i] = min(l[0], l[1], l[2], l[3]), max(h[0], h[1], h[2], h[3])
	})
	low, high = float32(math.Inf(1)), float32(math.Inf(-1))
	for i := range lows {
		low, high = min(low, lows[i]), max(high, highs[i])
	}
	return low, high
}

// finite reports whether v is neither NaN nor infinite.
func finite[T float32 | float64](v T) bool { return v-v == 0 }
