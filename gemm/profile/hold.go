package profile

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// hold makes a curve as smooth as it may be for every cell to be as fine as was asked for. The penalty then grows as
// given; where it does not the resolution is the same at all times, about. Where the readings do not carry
// it the curve stays as it was, and the answer is no: where no penalty makes it as fine, or where it is so unsure then
// that it shows nothing.
func (s *stitching) hold(ctx context.Context, c *solution, curve *Curve, finest time.Duration, growth float64) (*Curve, bool, error) {
	const (
		lowest, highest, fine = -6.0, 10.0, 0.2
		unsure                = 0.05 // half a 95 % interval, as a share
	)
	end := float64(s.n) * s.step // of the work, where no break says so
	if n := len(s.breaks); n > 1 {
		end = s.breaks[n-1]
	}
	work, at := s.cells.spanOf(s.breaks[0], end, 0), *c
	if slices.Max(curve.Resolution[work.first:work.last()+1]) <= finest {
		return curve, true, nil
	}
	at.growth = growth
	reached := func(order float64) (bool, error) {
		at.order = order
		var curve Curve
		if err := s.solve(&at); err != nil { // too few readings for a curve that is hardly smooth
			return false, nil
		}
		if err := s.resolution(ctx, &at, &curve); err != nil {
			return false, err
		}
		return slices.Max(curve.Resolution[work.first:work.last()+1]) <= finest, nil
	}
	low, high := lowest, highest
	if ok, err := reached(low); !ok || err != nil {
		return curve, false, err
	}
	for high-low > fine {
		ok, err := reached((low + high) / 2)
		if err != nil {
			return nil, false, err
		}
		if ok {
			low = (low + high) / 2
		} else {
			high = (low + high) / 2
		}
	}
	at.order = low
	if err := s.solve(&at); err != nil {
		return nil, false, err
	}
	held, err := s.curve(ctx, &at)
	if err != nil {
		return nil, false, err
	}
	var half []float64
	for i := work.first; i <= work.last(); i++ {
		half = append(half, (held.High[i]-held.Low[i])/2/math.Abs(held.Watts[i]))
	}
	if stats.Median(half) > unsure {
		return curve, false, nil
	}
	*c = at
	return held, true, nil
}
