package verify

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Round checks the pass round: the low bits are zero. Values moved by at most half a unit of the last remaining bit
// or, if they were truncated, by less than a unit.
var Round = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	d, err := plan.Data[struct {
		Zeroed   int  `json:"zeroed"`
		Truncate bool `json:"truncate"`
	}](s)
	return &Claim{
		Within: func(f weights.Format, _ int, v, bound float64) float64 {
			unit := spacing(f, math.Abs(v)+bound) * float64(int(1)<<(d.Zeroed&31))
			if !d.Truncate {
				unit /= 2
			}
			return unit
		},
		Codes: func(_ context.Context, m *Codes) error { return zeroedCodes(m, d.Zeroed) },
		Holds: func(_ context.Context, t *Result) error {
			if !t.Format.IsFloat() {
				return nil
			}
			if got := t.pair.zeroBits(t.pair.b); got < d.Zeroed {
				areZero := fmt.Sprintf("%d are", got)
				if got == 1 {
					areZero = "1 is"
				}
				return fmt.Errorf("the plan zeroes %s, and %s zero", bitsOf(d.Zeroed, "low"), areZero)
			}
			return nil
		},
	}, err
}}
