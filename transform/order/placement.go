package order

import "github.com/lowtoggle/lowtoggle/cost"

// Placement maps a path of labels to places. Consecutive labels of the path are at the distance of the lag with the
// largest weight.
type Placement struct {
	places []int    // place of the path's i-th label
	before [][]link // for each place of the path, links to earlier places of the path
}

// link joins two places of a path at the distance of a lag.
type link struct {
	to, group int
	weight    float64
}

// newPlacement returns a path over all places. The path follows the heaviest lag from place to place. If no lag leads
// to an unvisited place, the path continues at the first unvisited place. heavy are the sizes of the groups in bits;
// they multiply the lag weights.
func newPlacement(labels int, groups [][]cost.Lag, heavy []float64) *Placement {
	c := &Placement{before: make([][]link, labels)}
	at := make([]int, labels) // index of each place in the path; -1: not yet visited
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

// heaviest returns the unvisited place at the heaviest lag from a place; -1 if there is none.
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

// linked reports whether any two places are linked.
func (c *Placement) linked() bool {
	for _, list := range c.before {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// Lay returns the order of labels for a path: the path's labels in their places.
func (c *Placement) Lay(path []int) []int {
	order := make([]int, len(path))
	for i, label := range path {
		order[c.places[i]] = label
	}
	return order
}

// Pick returns the path of an order. It is the inverse of Lay.
func (c *Placement) Pick(order []int) []int {
	path := make([]int, len(order))
	for i, place := range c.places {
		path[i] = order[place]
	}
	return path
}
