package rounding

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Rates are what bits of weights cost, in relative energy per weight: 1 is an ordinary weight.
type Rates struct {
	// Significant[b] is the cost of a value of b significant bits, from 1, a power of two, to all the
	// format has (MantBits+1); of zero at 0. It does not fall from 1 on.
	Significant []float64 `json:"significant"`
	// Line is the cost of an element of a row or column that is all zero. [Trellis], which sees
	// elements, has no use for it; it is what a column of [Prune] comes to.
	Line float64 `json:"line"`
	// Differ is the cost of a step from row to row between values that differ, and Sign what is added
	// where their signs do. Both are 0 where rows do not follow one another.
	Differ float64 `json:"differ,omitempty"`
	Sign   float64 `json:"sign,omitempty"`
	// Run rows follow one another in one lane, then Run rows in the other; 0 where neither Differ nor
	// Sign counts. With 4, rows 0 to 3 are followed by 8 to 11, and 4 to 7 by 12 to 15. It is a power
	// of two up to 128.
	Run int `json:"run,omitempty"`
}

// Validate says what is wrong with the rates for values of f.
func (r Rates) Validate(f weights.Format) error {
	if len(r.Significant) != f.MantBits+2 {
		return fmt.Errorf("rounding: %d costs of significant bits; %s takes %d: of zero, and of 1 to %d bits",
			len(r.Significant), f.DType, f.MantBits+2, f.MantBits+1)
	}
	for b, c := range r.Significant {
		if !(c >= 0) || math.IsInf(c, 1) || b > 1 && c < r.Significant[b-1] {
			return fmt.Errorf("rounding: %d significant bits cost %g; costs are not negative and do not fall from 1 bit on", b, c)
		}
	}
	for _, c := range []float64{r.Line, r.Differ, r.Sign} {
		if !(c >= 0) || math.IsInf(c, 1) {
			return fmt.Errorf("rounding: a cost of %g; costs are not negative", c)
		}
	}
	if r.coupled() && (r.Run < 1 || r.Run > chunkRows/2 || r.Run&(r.Run-1) != 0) {
		return fmt.Errorf("rounding: runs of %d rows; give a power of two up to %d", r.Run, chunkRows/2)
	}
	return nil
}

func (r Rates) coupled() bool { return r.Differ > 0 || r.Sign > 0 }
