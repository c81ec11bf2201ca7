package forward

import (
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

// addBias replaces the products of a query with its keys by biased scores. A bias that all keys share has no effect on
// the softmax. addBias therefore subtracts the bias of the query's own key from all biases, because smaller numbers are
// more precise.
func addBias(a *decoder.ALiBi, row []float32, scale float64, head int) {
	own := bias(a, head, len(row)-1, scale)
	for i, v := range row {
		row[i] = float32(float64(scale*float64(v)) + (bias(a, head, i, scale) - own))
	}
}

// bias returns the bias of the score of the key at a position.
func bias(a *decoder.ALiBi, head, position int, scale float64) float64 {
	if !a.Coarse {
		return float64(a.Slopes[head] * float64(position))
	}
	return float64(scale * toBF16(toBF16(a.Slopes[head])*toBF16(float64(position))))
}

// toBF16 returns v rounded to BF16, ties to even.
func toBF16(v float64) float64 {
	b := math.Float32bits(float32(v))
	return float64(math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff))
}
