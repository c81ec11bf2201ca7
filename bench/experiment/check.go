package experiment

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrNull is the error for a series whose null points differ from the baseline.
var ErrNull = errors.New("a copy of the baseline does not use the same energy as the baseline")

// Check returns an [ErrNull] if the relative energy of a null point differs from 1 by more than 2 % or by more than
// four standard deviations. Then something besides the operands' bits changed the energy, and the series should be
// measured again.
func (s *Series) Check() error {
	const deviations, most = 4, 0.02
	var wrong []error
	for _, r := range s.Results() {
		if r.Experiment != Null {
			continue
		}
		allowed := most
		// HalfWidth is z standard deviations.
		if z := distuv.UnitNormal.Quantile((1 + confidence) / 2); r.HalfWidth > 0 {
			allowed = min(most, deviations/z*r.HalfWidth)
		}
		if off := r.Relative - 1; math.Abs(off) > allowed {
			wrong = append(wrong, fmt.Errorf("setup %v: null point %v differs by %.2f %% of energy, and at most %.2f %% are allowed: %w; measure it again in another folder",
				s.Setup, r.At, 100*off, 100*allowed, ErrNull))
		}
	}
	return errors.Join(wrong...)
}
