package forward

import (
	"math"
	"math/bits"
)

// alibi biases scores by the distance of a key from its query, with a slope for each head, instead of
// telling positions otherwise (Press et al., ICLR 2022).
type alibi struct {
	slope  []float64 // by query head
	coarse bool      // see alibiData
}

// newALiBi makes slopes: for 2ⁿ heads from 2^-(8/2ⁿ) down in equal ratios to 2^-8. For other numbers
// those of the next lower power of two, and then every second of the next higher.
func newALiBi(heads int, coarse bool) *alibi {
	a := &alibi{coarse: coarse}
	lower := 1 << (bits.Len(uint(heads)) - 1)
	for i := range heads {
		exponent := 8 * float64(i+1) / float64(lower)
		if i >= lower {
			exponent = 8 * float64(2*(i-lower)+1) / float64(2*lower)
		}
		a.slope = append(a.slope, math.Exp2(-exponent))
	}
	return a
}

// add replaces the products of a query and the keys up to its own by biased scores. A bias that all
// keys share changes nothing, so the own key's is taken off all: small numbers keep their digits.
func (a *alibi) add(row []float32, scale float64, head int) {
	own := a.bias(head, len(row)-1, scale)
	for i, v := range row {
		row[i] = float32(float64(scale*float64(v)) + (a.bias(head, i, scale) - own))
	}
}

// bias is what the key at a position gets.
func (a *alibi) bias(head, position int, scale float64) float64 {
	if !a.coarse {
		return float64(a.slope[head] * float64(position))
	}
	return float64(scale * toBF16(toBF16(a.slope[head])*toBF16(float64(position))))
}

// toBF16 rounds to the nearest BF16, and from the middle to the even one.
func toBF16(v float64) float64 {
	b := math.Float32bits(float32(v))
	return float64(math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff))
}
