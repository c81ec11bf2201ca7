package transform

// course is how a path of labels is laid out in places, so that labels that follow one another in the
// path follow one another on the wires.
type course struct {
	places []int   // the path's i-th label comes to places[i]
	before [][]tie // of each place of the path, to places of the path before it
}

// tie joins two labels of a path by a wire.
type tie struct {
	to, group int
	weight    float64
}

// newCourse follows the heaviest wire from place to place, and goes on at the first place that is left.
// heavy are the groups' sizes, by which weights are multiplied to compare them.
func newCourse(labels int, groups [][]wire, heavy []float64) *course {
	c := &course{before: make([][]tie, labels)}
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
		for g, wires := range groups {
			for _, w := range wires {
				if v := w.weight[place%laneRun]; v > 0 && place+w.lag < labels {
					a, b := at[place], at[place+w.lag]
					c.before[max(a, b)] = append(c.before[max(a, b)], tie{min(a, b), g, v})
				}
			}
		}
	}
	return c
}

// heaviest is the unvisited place that the heaviest wire from a place leads to; -1 where there is none.
func heaviest(place int, at []int, groups [][]wire, heavy []float64) int {
	best, to := 0.0, -1
	for g, wires := range groups {
		for _, w := range wires {
			next := place + w.lag
			if v := w.weight[place%laneRun] * heavy[g]; v > best && next < len(at) && at[next] < 0 {
				best, to = v, next
			}
		}
	}
	return to
}

// within lists the ties between places from from to to of the path, counted from there, both ways.
func (c *course) within(from, to int) [][]tie {
	ties := make([][]tie, to-from)
	for i := from; i < to; i++ {
		for _, t := range c.before[i] {
			if t.to >= from {
				ties[i-from] = append(ties[i-from], tie{t.to - from, t.group, t.weight})
				ties[t.to-from] = append(ties[t.to-from], tie{i - from, t.group, t.weight})
			}
		}
	}
	return ties
}

// tied reports whether any two places are.
func (c *course) tied() bool {
	for _, list := range c.before {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// lay puts a path of labels into places.
func (c *course) lay(path []int) []int {
	order := make([]int, len(path))
	for i, label := range path {
		order[c.places[i]] = label
	}
	return order
}

// pick reads the path of an order.
func (c *course) pick(order []int) []int {
	path := make([]int, len(order))
	for i, place := range c.places {
		path[i] = order[place]
	}
	return path
}
