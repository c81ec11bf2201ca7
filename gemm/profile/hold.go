package profile

import (
	"context"
	"slices"
	"time"
)

// hold draws the curve as smooth as it may be for every cell to be as fine as was asked for. The penalty is
// then the same at all times, and so is the resolution, about. Where the readings do not carry it, the curve
// stays as it was.
func (s *stitching) hold(ctx context.Context, c *solution, finest time.Duration) error {
	const lowest, highest, fine = -6.0, 10.0, 0.05
	end := float64(s.n) * s.step // of the work, where no break says so
	if n := len(s.breaks); n > 1 {
		end = s.breaks[n-1]
	}
	work, even := s.clipped(s.breaks[0], end), *c
	even.growth = 0
	reached := func(order float64) (bool, error) {
		even.order = order
		var curve Curve
		if err := s.solve(&even); err != nil {
			return false, err
		}
		if err := s.resolution(ctx, &even, &curve); err != nil {
			return false, err
		}
		return slices.Max(curve.Resolution[work.first:work.last+1]) <= finest, nil
	}
	low, high := lowest, highest
	if ok, err := reached(low); !ok || err != nil {
		return err
	}
	for high-low > fine {
		ok, err := reached((low + high) / 2)
		if err != nil {
			return err
		}
		if ok {
			low = (low + high) / 2
		} else {
			high = (low + high) / 2
		}
	}
	even.order = low
	if err := s.solve(&even); err != nil {
		return err
	}
	*c = even
	return nil
}
