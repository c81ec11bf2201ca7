package decoder

import (
	"math/bits"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// ALiBi biases scores by the distance of a key from its query (Press et al., ICLR 2022).
type ALiBi struct {
	Slopes []float64 // one for each query head
	// Coarse: the bias is rounded to BF16 and added before the scores are scaled (Falcon).
	Coarse bool
}

// newALiBi returns the biases for a number of heads. For 2ⁿ heads they are a geometric series from 2^-(8/2ⁿ) to 2^-8. Other
// numbers of heads get the slopes of the next lower power of two, then every second slope of the next higher one.
func newALiBi(heads int, coarse bool) *ALiBi {
	a := &ALiBi{Coarse: coarse}
	lower := 1 << (bits.Len(uint(heads)) - 1)
	for i := range heads {
		exponent := 8 * float64(i+1) / float64(lower)
		if i >= lower {
			exponent = 8 * float64(2*(i-lower)+1) / float64(2*lower)
		}
		a.Slopes = append(a.Slopes, elementary.Exp2(-exponent))
	}
	return a
}
