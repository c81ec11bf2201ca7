package profile

import (
	"context"
	"fmt"
	"slices"
)

// place finds the sensors' windows and delays, and the law of power and pace; only the energy counter's windows are
// known. It returns a smoothness to go on from.
func (s *stitching) place(ctx context.Context) (smoothness, error) {
	var before []source
	for _, src := range s.sources {
		before = append(before, *src)
	}
	lagging := s.lag(ctx)
	about, err := s.placed(ctx, lagging)
	if err != nil || !lagging || !s.refuted() {
		return about, err
	}
	if s.pacing, err = s.paced(ctx); err != nil {
		return about, err
	}
	s.sources = nil
	for _, src := range before {
		s.sources = append(s.sources, &src)
	}
	return s.placed(ctx, false)
}

// placed holds each sensor against the curve that others give, the reference first, and then settles it
// together with the curve of all. A delay that all have is the business of onset, a lag that of lag.
func (s *stitching) placed(ctx context.Context, lagging bool) (smoothness, error) {
	c, err := s.first(ctx, lagging)
	if err != nil {
		return assumed, err
	}
	reference := s.sources[0]
	used := []*source{reference}
	for _, other := range s.sources[1:] {
		if !other.Used {
			continue
		}
		other.Gain *= s.level(other, c)
		if !s.coarse(other, reference, widest) { // else no window that could be found is short enough
			s.seek(ctx, other, c)
			other.Gain *= s.level(other, c)
		}
		if err := ctx.Err(); err != nil {
			return assumed, err
		}
		if other.Used, other.Why = s.worth(other, reference, c); other.Used {
			used = append(used, other)
			if c, err = s.fit(ctx, used, c.smoothness); err != nil {
				return assumed, err
			}
		}
	}
	if len(used) > 1 {
		if c, err = s.fit(ctx, used, c.smoothness, growths...); err != nil {
			return assumed, err
		}
		for _, other := range used[1:] {
			s.settle(ctx, other, used, c)
		}
	}
	if !lagging {
		if c, err = s.legislate(ctx, used, c); err != nil {
			return assumed, err
		}
	}
	return c.smoothness, nil
}

// first is the curve of the reference alone: of the sensor that showed the lag, or else of one that is surest.
func (s *stitching) first(ctx context.Context, lagging bool) (*solution, error) {
	if lagging {
		c, err := s.fit(ctx, s.sources[:1], assumed, growths...)
		if err != nil {
			return nil, err
		}
		return s.legislate(ctx, s.sources[:1], c)
	}
	c, err := s.refer(ctx)
	if err == nil && s.onset(ctx, s.sources[0], c) {
		c, err = s.fit(ctx, s.sources[:1], assumed, growths...)
	}
	return c, err
}

// refer makes the curve of the reference alone. An energy counter whose steps are seen late, now more and now
// less, says little of each stretch: where another sensor is far surer, that becomes the reference, and the
// counter is not used.
func (s *stitching) refer(ctx context.Context) (*solution, error) {
	const (
		sure  = 0.02 // of the power
		surer = 4    // times
	)
	first, best := s.sources[0], 0
	c, err := s.fit(ctx, s.sources[:1], assumed, growths...)
	if err != nil {
		return nil, err
	}
	off := c.noise[0].watts
	if off <= sure*slices.Max(c.watts) {
		return c, nil
	}
	least := off / surer
	for i, other := range s.sources[1:] {
		if other.Window > first.Window || s.count(other) < enough {
			continue
		}
		alone, err := s.fit(ctx, []*source{other}, assumed, growths...)
		if err != nil {
			return nil, err
		}
		if n := alone.noise[0].watts; n < least {
			best, least, c = i+1, n, alone
		}
	}
	if best > 0 {
		s.sources[0], s.sources[best] = s.sources[best], first
		first.Used, first.Why = false, fmt.Sprintf("a reading is off by ±%.0f W, those of the %s by ±%.0f W", off, s.sources[0].Name, least)
	}
	return c, nil
}
