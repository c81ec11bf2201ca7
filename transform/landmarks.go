package transform

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"golang.org/x/sync/errgroup"
)

// curve strings labels along a space-filling curve: each is placed by whether it is nearer to some
// landmarks than half of the others are, and those places are visited in the order of a Gray code, so
// that neighbours on the curve differ in one of them.
func (s *sketch) curve(ctx context.Context, joint bool, workers int) ([]int, error) {
	const each = 8 // labels to a place, about
	landmarks := max(1, bits.Len(uint(s.labels/each)))
	rank := make([]uint, s.labels)
	least := make([]float64, s.labels) // distance from the nearest landmark
	for i := range least {
		least[i] = math.Inf(1)
	}
	mark := 0
	for range landmarks {
		d, err := s.from(ctx, mark, joint, workers)
		if err != nil {
			return nil, err
		}
		middle := slices.Sorted(slices.Values(d))[s.labels/2]
		for label, v := range d {
			bit := rank[label] & 1 // of a Gray code, which turns round where the number so far is odd
			if v > middle {
				bit ^= 1
			}
			rank[label] = rank[label]<<1 | bit
			least[label] = min(least[label], v)
		}
		mark = slices.Index(least, slices.Max(least))
	}
	path := identity(s.labels)
	slices.SortStableFunc(path, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	return path, nil
}

// from measures the distance of all labels from one.
func (s *sketch) from(ctx context.Context, mark int, joint bool, workers int) ([]float64, error) {
	d, mass := make([]float64, s.labels), s.mass()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	const task = 256
	for first := 0; first < s.labels; first += task {
		g.Go(func() error {
			sums := make([]separation, len(s.groups))
			for label := first; label < min(first+task, s.labels); label++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				if label != mark {
					s.between(mark, label, sums)
					d[label] = weigh(sums, mass, joint)
				}
			}
			return nil
		})
	}
	return d, g.Wait()
}
