package experiment

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrNull is the error for a series whose null points differ from the baseline.
var ErrNull = errors.New("the energy depended on more than the operands' values")

// Check returns an [ErrNull] if the relative energy of a null point differs from 1 by more than 2 % or by more than four
// standard deviations. The energy then depended on more than the operands' bits, and the series should be measured again.
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
			wrong = append(wrong, fmt.Errorf("setup %v: the energy of copy %v of the baseline differs by %.2f %% from the baseline's, and at most %.2f %% are allowed: %w; measure the series again in another folder",
				s.Setup, r.At, 100*off, 100*allowed, ErrNull))
		}
	}
	return errors.Join(wrong...)
}
