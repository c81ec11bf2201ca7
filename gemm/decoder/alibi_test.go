package decoder

import (
	"math"
	"testing"
)

func TestSlopes(t *testing.T) {
	for heads, exponents := range map[int][]float64{
		1: {8}, 2: {4, 8}, 3: {4, 8, 2}, 6: {2, 4, 6, 8, 1, 3}, 8: {1, 2, 3, 4, 5, 6, 7, 8},
	} {
		a := newALiBi(heads, false)
		for i, e := range exponents {
			if want := math.Exp2(-e); len(a.Slopes) != heads || a.Slopes[i] != want {
				t.Errorf("%d heads: slopes %v, want 2^-%v", heads, a.Slopes, exponents)
			}
		}
	}
}
