package order

import "github.com/lowtoggle/lowtoggle/cost"

// Placement maps a path of labels to places: labels that follow one another in the path are at the lag of the largest weight from
// one another.
type Placement struct {
	places []int    // the path's i-th label comes to places[i]
	before [][]link // of each place of the path, to places of the path before it
}

// link joins two places of a path that are a lag apart.
type link struct {
	to, group int
	weight    float64
}

// newPlacement follows the heaviest lag from place to place, and goes on at the first place that is left. heavy
// are the groups' sizes, by which weights are multiplied to compare them.
func newPlacement(labels int, groups [][]cost.Lag, heavy []float64) *Placement {
	c := &Placement{before: make([][]link, labels)}
	at := make([]int, labels) // where in the path a place is; -1: not yet
	for i := range at {
		at[i] = -1
	}
	for first := range labels {
		for place := first; place >= 0 && at[place] < 0; place = heaviest(place, at, groups, heavy) {
			at[place] = len(c.places)
			c.places = append(c.places, place)
		}
	}
	for place := range labels {
		for g, lags := range groups {
			for _, w := range lags {
				if v := w.Weights[place%len(w.Weights)]; v > 0 && place+w.Distance < labels {
					a, b := at[place], at[place+w.Distance]
					c.before[max(a, b)] = append(c.before[max(a, b)], link{min(a, b), g, v})
				}
			}
		}
	}
	return c
}

// heaviest is the unvisited place that the heaviest lag from a place leads to; -1 where there is none.
func heaviest(place int, at []int, groups [][]cost.Lag, heavy []float64) int {
	best, to := 0.0, -1
	for g, lags := range groups {
		for _, w := range lags {
			next := place + w.Distance
			if v := w.Weights[place%len(w.Weights)] * heavy[g]; v > best && next < len(at) && at[next] < 0 {
				best, to = v, next
			}
		}
	}
	return to
}

// linked reports whether any two places are.
func (c *Placement) linked() bool {
	for _, list := range c.before {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// Lay puts a path of labels into places.
func (c *Placement) Lay(path []int) []int {
	order := make([]int, len(path))
	for i, label := range path {
		order[c.places[i]] = label
	}
	return order
}

// Pick returns the path of an order: the inverse of Lay.
func (c *Placement) Pick(order []int) []int {
	path := make([]int, len(order))
	for i, place := range c.places {
		path[i] = order[place]
	}
	return path
}
