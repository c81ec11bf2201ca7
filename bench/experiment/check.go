package experiment

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrNull marks measurements that contradict their null points.
var ErrNull = errors.New("a copy of the baseline does not cost what the baseline does")

// Check holds the series against its null points, which must come out as 1: to within four
// standard deviations, and in any case within 2 %. What it finds is an ErrNull: the series speaks
// of something else than bits, and should be measured again.
func (s *Series) Check() error {
	const deviations, most = 4, 0.02
	var wrong []error
	for _, r := range s.Results() {
		if r.Experiment != Null {
			continue
		}
		allowed := most
		// Beyond so many deviations is as rare as the interval's quantile says.
		if z := distuv.UnitNormal.Quantile((1 + confidence) / 2); r.HalfWidth > 0 {
			allowed = min(most, deviations/z*r.HalfWidth)
		}
		if off := r.Relative - 1; math.Abs(off) > allowed {
			wrong = append(wrong, fmt.Errorf("setup %v: null point %v is off by %.2f %%, and %.2f %% are allowed: %w; measure it again in another folder",
				s.Setup, r.At, 100*off, 100*allowed, ErrNull))
		}
	}
	return errors.Join(wrong...)
}
