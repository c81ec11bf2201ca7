package profile

import (
	"context"
)

// place finds the sensors' windows and delays; only the energy counter's windows are known. Each sensor is
// held against the curve that others give, the counter first, and then settled together with the curve of all. A
// delay that all have is the business of onset. It returns a smoothness to go on from.
func (s *stitching) place(ctx context.Context) (smoothness, error) {
	reference := s.sources[0]
	used := []*source{reference}
	c, err := s.fit(ctx, used, assumed, growths...)
	if err != nil {
		return assumed, err
	}
	if s.onset(reference, c) {
		if c, err = s.fit(ctx, used, assumed, growths...); err != nil {
			return assumed, err
		}
	}
	for _, other := range s.sources[1:] {
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
	if len(used) == 1 {
		return c.smoothness, nil
	}
	if c, err = s.fit(ctx, used, c.smoothness, growths...); err != nil {
		return assumed, err
	}
	for _, other := range used[1:] {
		s.settle(other, used, c)
	}
	return c.smoothness, nil
}
