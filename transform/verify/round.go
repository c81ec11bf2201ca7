package verify

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Round checks the pass round: low bits are zero, and values half a unit from where they were, or a whole one where
// they were truncated.
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
		Holds: func(_ context.Context, t *Result) error {
			if !t.Format.IsFloat() {
				return nil
			}
			if got := t.pair.zeroBits(t.pair.b); got < d.Zeroed {
				return fmt.Errorf("%d low bits are claimed to be zero, %d are", d.Zeroed, got)
			}
			return nil
		},
	}, err
}}
