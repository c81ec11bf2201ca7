package transform

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// crossings are what toggles on the wires of a path, place by place of it.
type crossings [][]crossing

// crossing is one wire, to another place of the path: weighted bits with the signs of both labels as they
// are, or both turned, and with one of them turned.
type crossing struct {
	to             int
	alike, opposed float64
}

// crossings of every place of the path to places before it.
func (s *sketch) crossings(ctx context.Context, c *course, path []int, workers int) (crossings, error) {
	all := make(crossings, len(path))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	const task = 256
	for first := 0; first < len(path); first += task {
		g.Go(func() error {
			sums := make([]separation, len(s.groups))
			for i := first; i < min(first+task, len(path)); i++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				for _, t := range c.before[i] {
					s.between(path[t.to], path[i], sums)
					d := sums[t.group]
					all[i] = append(all[i], crossing{t.to, t.weight * d.alike, t.weight * d.opposed})
				}
			}
			return nil
		})
	}
	return all, g.Wait()
}

// sum of all, with the places of the path that are turned.
func (c crossings) sum(turned []bool) (sum float64) {
	for i, list := range c {
		for _, x := range list {
			if turned[i] == turned[x.to] {
				sum += x.alike
			} else {
				sum += x.opposed
			}
		}
	}
	return sum
}

// signs says which places of the path to turn, for the least sum of two searches: one that chooses each by
// those before it, which is the best there is where every place has one wire back, and one from none
// turned, so that signs never raise the sum. Fixed places stay.
func (c crossings) signs(fixed []bool) []bool {
	all := make(crossings, len(c)) // both ends of every wire
	for i, list := range c {
		all[i] = append(all[i], list...)
		for _, x := range list {
			all[x.to] = append(all[x.to], crossing{i, x.alike, x.opposed})
		}
	}
	none := make([]bool, len(c))
	chosen := make([]bool, len(c))
	for i, list := range c {
		chosen[i] = !fixed[i] && gain(i, list, chosen) > 0
	}
	all.improve(chosen, fixed)
	all.improve(none, fixed)
	if c.sum(none) < c.sum(chosen) {
		return none
	}
	return chosen
}

// gain in the sum of the list's wires by turning place i.
func gain(i int, list []crossing, turned []bool) (sum float64) {
	for _, x := range list {
		if turned[i] == turned[x.to] {
			sum += x.alike - x.opposed
		} else {
			sum += x.opposed - x.alike
		}
	}
	return sum
}

// improve turns places that are not fixed for as long as turning one lowers the sum.
func (c crossings) improve(turned, fixed []bool) {
	const sweeps = 16
	for range sweeps {
		better := false
		for i, list := range c {
			if !fixed[i] && gain(i, list, turned) > 1e-9 {
				turned[i], better = !turned[i], true
			}
		}
		if !better {
			return
		}
	}
}
