package paper

import (
	"context"
	"math/bits"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Alignment holds the quantities of Figure 8: means over a product's operands.
type Alignment struct {
	Bits float64 // share of equal bits in two elements that are multiplied together, 0 to 1
	A, B float64 // share of set bits: the Hamming weight over the width, 0 to 1
}

// sampled is the number of rows and of columns of the analysed operands. Small operands represent larger ones, because
// patterns scale with the matrix.
const sampled = 128

// Align returns the bit alignment and the Hamming weights of operands of type d. a draws x[128,128] and b draws w[128,128]. The
// means are over all pairs of elements that x·wᵀ multiplies. Errors are those of drawing a pattern and of ctx.
func Align(ctx context.Context, a, b pattern.Pattern, d weights.DType) (Alignment, error) {
	x, err := countBits(ctx, a, d, 2*firstSeed)
	if err != nil {
		return Alignment{}, err
	}
	w, err := countBits(ctx, b, d, 2*firstSeed+1)
	if err != nil {
		return Alignment{}, err
	}
	var sum Alignment
	for i := range x {
		p, q := float64(x[i])/sampled, float64(w[i])/sampled
		sum.Bits += p*q + (1-p)*(1-q) // every row of A is multiplied with every row of B
		sum.A += p
		sum.B += q
	}
	n := float64(len(x))
	return Alignment{sum.Bits / n, sum.A / n, sum.B / n}, nil
}

// countBits counts, for every column and bit, the rows in which it is set.
func countBits(ctx context.Context, p pattern.Pattern, d weights.DType, seed uint64) ([]int, error) {
	data, err := p.Generate(ctx, pattern.Spec{DType: d, Rows: sampled, Cols: sampled, Seed: seed}, 1)
	if err != nil {
		return nil, err
	}
	f, _ := d.Format() // types without a format cannot be drawn
	counts := make([]int, sampled*f.Bits)
	for i := range sampled * sampled {
		at := counts[i%sampled*f.Bits:]
		for b := f.Elem(data, i); b != 0; b &= b - 1 {
			at[bits.TrailingZeros32(b)]++
		}
	}
	return counts, nil
}
