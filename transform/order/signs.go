package order

import (
	"context"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Toggles are the weighted bits that toggle along a path, by place of the path.
type Toggles [][]toggle

// toggle is one link to another place of the path: weighted bits with the signs of both labels as they are, or
// both flipped, and with one of them flipped.
type toggle struct {
	to             int
	alike, opposed float64
}

// Toggles returns the toggles of every place of the path relative to earlier places.
func (s *Sketch) Toggles(ctx context.Context, c *Placement, path []int, workers int) (Toggles, error) {
	all := make(Toggles, len(path))
	const task = 256
	return all, parallel.Run(ctx, (len(path)+task-1)/task, workers, func(ctx context.Context, job int) error {
		sums := make([]separation, len(s.groups))
		for i := job * task; i < min((job+1)*task, len(path)); i++ {
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

// Sum returns the sum over all places of the path if some of them are flipped.
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

// Signs returns which places of the path to flip, for the least sum of two searches. One chooses each place by
// those before it, which is optimal where every place has one link back. The other starts from none
// flipped, so signs never raise the sum. Fixed places stay.
func (c Toggles) Signs(fixed []bool) []bool {
	all := make(Toggles, len(c)) // both ends of every link
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

// gain in the sum of the list's links by flipping place i.
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

// improve flips places that are not fixed for as long as flipping one lowers the sum.
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
