package profile

import "math"

// roughness is the matrix of the penalty on a curve's second differences. None of them reaches across a
// break. After a break power changes the more slowly the longer it is ago: a second derivative is of the
// order of the jump over the square of that time, so the penalty grows with a power of it.
func roughness(c cells, breaks []float64, growth float64) *normal {
	const (
		young = 0.01 // seconds after a break at which the penalty begins to grow
		old   = 0.5  // at which it ends

		rounding = 1e-6
	)
	m := newNormal(c.n, min(2, c.n-1))
	add := func(weight float64, first int, d ...float64) {
		for j := range d {
			for k := j; k < len(d); k++ {
				m.row(first + j)[k-j] += weight * d[j] * d[k]
			}
		}
	}
	for i := 1; i+1 < c.n; i++ {
		since, inside, edge := old, -1.0, false
		for _, b := range breaks {
			switch x := b/c.step - float64(i); {
			case x > rounding && x < 1-rounding:
				inside = x
			case x > rounding-1 && x < 2-rounding:
				edge = true
			case x < 0:
				since = min(since, (0.5-x)*c.step)
			}
		}
		switch {
		case inside >= 0:
			// Power may jump within the cell: it is then so much of what was before and so much of what follows.
			add(1, i-1, -inside, 1, inside-1)
		case !edge:
			add(math.Pow(1+since/young, growth), i-1, 1, -2, 1)
		}
	}
	return m
}
