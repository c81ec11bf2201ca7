package stitch

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// row is a reading as an equation: the mean of the trace over span equals watts.
type row struct {
	span
	watts       float64
	run, sensor int
	idle        bool // whether the card was idle during the whole span
	// sigma is the standard deviation of the reading. weight is 1/sigma², and smaller for an outlier.
	sigma, weight float64
}

// system holds the normal equations of rows.
type system struct {
	matrix *banded
	right  []float64
}

// assemble builds the normal equations of the rows. A row's weight is multiplied by times, the number of times that its
// run was drawn.
func assemble(c cells, rows []row, times func(run int) float64) system {
	band := 2
	for _, r := range rows {
		band = max(band, len(r.share)-1)
	}
	s := system{newBanded(c.n, min(band, c.n-1)), make([]float64, c.n)}
	for _, r := range rows {
		w := r.weight * times(r.run)
		if w == 0 {
			continue
		}
		r.into(s.matrix, w)
		floats.AddScaled(s.right[r.first:r.first+len(r.share)], w*r.watts, r.share)
	}
	s.regularise()
	return s
}

// once counts every run once. It is the function times without a bootstrap.
func once(int) float64 { return 1 }

// regularise couples neighbouring cells very weakly. It only affects cells without any reading.
func (s system) regularise() {
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

// solver holds a factored matrix.
type solver struct{ factor blas64.TriangularBand }

// solver factorises the equations with the penalty; ok is false if the matrix is singular. Package mat can do the same,
// but its estimate of the condition number takes three times as long as the rest of the fit.
func (s system) solver(penalty *banded, lambda float64) (solver, bool) {
	factor, ok := lapack64.Pbtrf(s.matrix.plus(lambda, penalty))
	return solver{factor}, ok
}

// solve replaces the right-hand side x by the solution.
func (f solver) solve(x []float64) {
	lapack64.Pbtrs(f.factor, blas64.General{Rows: len(x), Cols: 1, Stride: 1, Data: x})
}

// solve returns the trace; ok is false if the equations are singular.
func (s system) solve(penalty *banded, lambda float64) ([]float64, bool) {
	f, ok := s.solver(penalty, lambda)
	if !ok {
		return nil, false
	}
	p := slices.Clone(s.right)
	f.solve(p)
	return p, true
}

// misfit returns the minimum of the objective: the weighted squared residuals plus the penalty.
func (s system) misfit(rows []row, penalty *banded, lambda float64) float64 {
	p, ok := s.solve(penalty, lambda)
	if !ok {
		return math.Inf(1)
	}
	total := 0.0
	for _, r := range rows {
		off := r.watts - r.mean(p)
		total += r.weight * off * off
	}
	for i, x := range penalty.times(p) {
		total += lambda * x * p[i]
	}
	return total
}

// scale returns the mean of the matrix's diagonal. λ is relative to it.
func (s system) scale() float64 {
	mean := 0.0
	for i := range s.matrix.n {
		mean += s.matrix.row(i)[0] / float64(s.matrix.n)
	}
	return mean
}
