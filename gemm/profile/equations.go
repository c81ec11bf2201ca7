package profile

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// row is a reading as an equation: the curve's mean over a span is so many watts.
type row struct {
	span
	watts       float64
	run, sensor int
	idle        bool // the card was, all the time
	// sigma is the standard deviation of such a reading; weight is 1/sigma², and less where the reading
	// lies far off.
	sigma, weight float64
}

// system is the normal equations of rows: their matrix and right side.
type system struct {
	matrix *normal
	right  []float64
}

// assemble the rows' normal equations; each counts as often as times says of its run.
func assemble(c cells, rows []row, times func(run int) float64) system {
	band := 2
	for _, r := range rows {
		band = max(band, len(r.share)-1)
	}
	s := system{newNormal(c.n, min(band, c.n-1)), make([]float64, c.n)}
	for _, r := range rows {
		w := r.weight * times(r.run)
		if w == 0 {
			continue
		}
		r.into(s.matrix, w)
		floats.AddScaled(s.right[r.first:r.first+len(r.share)], w*r.watts, r.share)
	}
	s.tie()
	return s
}

// once counts every run.
func once(int) float64 { return 1 }

// tie draws neighbours together so faintly that only cells of which no reading knows anything notice.
func (s system) tie() {
	const faint = 1e-6
	n, mean := s.matrix, 0.0
	for i := range n.n {
		mean += n.row(i)[0] / float64(n.n)
	}
	for i := 1; i < n.n; i++ {
		n.row(i - 1)[0] += faint * mean
		n.row(i)[0] += faint * mean
		n.row(i - 1)[1] -= faint * mean
	}
}

// solver has a factored matrix.
type solver struct{ factor blas64.TriangularBand }

// solver of the equations with their penalty, and whether there is one. Package mat has the same; but it
// looks at the matrix's condition each time, which takes three times as long as all the rest.
func (s system) solver(bend *normal, lambda float64) (solver, bool) {
	factor, ok := lapack64.Pbtrf(s.matrix.plus(lambda, bend))
	return solver{factor}, ok
}

// solve puts the solution in the place of the right side.
func (f solver) solve(x []float64) {
	lapack64.Pbtrs(f.factor, blas64.General{Rows: len(x), Cols: 1, Stride: 1, Data: x})
}

// solve finds the curve, and whether there is one.
func (s system) solve(bend *normal, lambda float64) ([]float64, bool) {
	f, ok := s.solver(bend, lambda)
	if !ok {
		return nil, false
	}
	p := slices.Clone(s.right)
	f.solve(p)
	return p, true
}

// misfit is by how much the best curve misses what the rows say and what is smooth, together.
func (s system) misfit(rows []row, bend *normal, lambda float64) float64 {
	p, ok := s.solve(bend, lambda)
	if !ok {
		return math.Inf(1)
	}
	total := 0.0
	for _, r := range rows {
		off := r.watts - r.mean(p)
		total += r.weight * off * off
	}
	for i, x := range bend.times(p) {
		total += lambda * x * p[i]
	}
	return total
}

// scale is the mean of the matrix's diagonal: what λ is measured against.
func (s system) scale() float64 {
	mean := 0.0
	for i := range s.matrix.n {
		mean += s.matrix.row(i)[0] / float64(s.matrix.n)
	}
	return mean
}
