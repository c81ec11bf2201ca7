package profile

import (
	"context"
	"math"
	"slices"
	"time"
)

// hold makes a curve as smooth as it may be for every cell to be as fine as was asked for. The penalty is
// then the same at all times, and so is the resolution, about. Where the readings do not carry it the curve
// stays as it was: where no penalty makes it as fine, or where it is so unsure then that it shows nothing.
func (s *stitching) hold(ctx context.Context, c *solution, curve *Curve, finest time.Duration) (*Curve, error) {
	const (
		lowest, highest, fine = -6.0, 10.0, 0.05
		unsure                = 0.05 // half a 95 % interval, as a share
	)
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
		return curve, err
	}
	for high-low > fine {
		ok, err := reached((low + high) / 2)
		if err != nil {
			return nil, err
		}
		if ok {
			low = (low + high) / 2
		} else {
			high = (low + high) / 2
		}
	}
	even.order = low
	if err := s.solve(&even); err != nil {
		return nil, err
	}
	held, err := s.curve(ctx, &even)
	if err != nil {
		return nil, err
	}
	var half []float64
	for i := work.first; i <= work.last; i++ {
		half = append(half, (held.High[i]-held.Low[i])/2/math.Abs(held.Watts[i]))
	}
	if median(half) > unsure {
		return curve, nil
	}
	*c = even
	return held, nil
}
