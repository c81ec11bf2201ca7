package profile

import (
	"context"
	"fmt"
	"slices"
)

// place finds the sensors' windows and delays; only the energy counter's windows are known. Each sensor is
// held against the curve that others give, the reference first, and then settled together with the curve of all. A
// delay that all have is the business of onset. It returns a smoothness to go on from.
func (s *stitching) place(ctx context.Context) (smoothness, error) {
	c, err := s.refer(ctx)
	if err != nil {
		return assumed, err
	}
	reference := s.sources[0]
	used := []*source{reference}
	if s.onset(reference, c) {
		if c, err = s.fit(ctx, used, assumed, growths...); err != nil {
			return assumed, err
		}
	}
	for _, other := range s.sources[1:] {
		if !other.Used {
			continue
		}
		other.Gain *= s.level(other, c)
		s.seek(other, c)
		other.Gain *= s.level(other, c)
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
			s.settle(other, used, c)
		}
	}
	return c.smoothness, nil
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
		if other.Window > first.Window || len(s.rows([]*source{other})) < enough {
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
