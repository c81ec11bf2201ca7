package order

import (
	"context"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Toggles are the weighted toggling bits of each place of a path, relative to earlier places.
type Toggles [][]toggle

// toggle is one link to another place of the path. Both fields are weighted bits: with equal flips of the two labels
// (none or both), and with one label flipped.
type toggle struct {
	to             int
	alike, opposed float64
}

// Toggles returns the toggles of every place of the path relative to earlier places.
func (s *Sketch) Toggles(ctx context.Context, c *Placement, path []int, workers int) (Toggles, error) {
	if ctx == nil {
		return Toggles{}, parallel.ErrNoContext
	}
	all := make(Toggles, len(path))
	const task = 256
	return all, parallel.Spans(ctx, len(path), task, workers, func(ctx context.Context, first, end int) error {
		sums := make([]separation, len(s.groups))
		for i := first; i < end; i++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			for _, t := range c.before[i] {
				s.between(path[t.to], path[i], sums)
				d := sums[t.group]
				all[i] = append(all[i], toggle{t.to, t.weight * d.alike, t.weight * d.opposed})
			}
		}
		return nil
	})
}

// Sum returns the sum over all places of the path, with the places in flipped flipped.
func (c Toggles) Sum(flipped []bool) (sum float64) {
	for i, list := range c {
		for _, x := range list {
			if flipped[i] == flipped[x.to] {
				sum += x.alike
			} else {
				sum += x.opposed
			}
		}
	}
	return sum
}

// Signs returns which places of the path to flip. It takes the better result of two searches. The first search
// chooses each place's sign from those of earlier places, which is optimal if every place has one link to an earlier
// place. The second search starts with no flips, so signs never raise the sum. Fixed places are not flipped.
func (c Toggles) Signs(fixed []bool) []bool {
	all := make(Toggles, len(c)) // links in both directions
	for i, list := range c {
		all[i] = append(all[i], list...)
		for _, x := range list {
			all[x.to] = append(all[x.to], toggle{i, x.alike, x.opposed})
		}
	}
	none := make([]bool, len(c))
	chosen := make([]bool, len(c))
	for i, list := range c {
		chosen[i] = !fixed[i] && gain(i, list, chosen) > 0
	}
	all.improve(chosen, fixed)
	all.improve(none, fixed)
	if c.Sum(none) < c.Sum(chosen) {
		return none
	}
	return chosen
}

// gain returns the decrease of the list's sum if place i is flipped.
func gain(i int, list []toggle, flipped []bool) (sum float64) {
	for _, x := range list {
		if flipped[i] == flipped[x.to] {
			sum += x.alike - x.opposed
		} else {
			sum += x.opposed - x.alike
		}
	}
	return sum
}

// improve flips places that are not fixed until no single flip lowers the sum.
func (c Toggles) improve(flipped, fixed []bool) {
	const sweeps = 16
	for range sweeps {
		better := false
		for i, list := range c {
			if !fixed[i] && gain(i, list, flipped) > 1e-9 {
				flipped[i], better = !flipped[i], true
			}
		}
		if !better {
			return
		}
	}
}
