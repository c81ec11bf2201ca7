// Package nnls solves non-negative least squares.
package nnls

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Solve returns coefficients c ≥ 0 with the least ‖X·c − y‖² + ridge·n·‖c − prior‖², for n rows of X. It is
// coordinate descent on a convex problem. It ends when no coefficient moves by more than 1e-8, so scale columns for
// coefficients of about 1. If columns are nearly collinear, coefficients may still be off by 1e-5. X and y are only
// read. For an empty X there are no coefficients.
func Solve(x *mat.Dense, y []float64, ridge float64, prior []float64) []float64 {
	if x == nil || x.IsEmpty() {
		return nil
	}
	n, m := x.Dims()
	var gram mat.SymDense
	gram.SymOuterK(1, x.T())
	full := mat.DenseCopyOf(&gram)
	var right mat.VecDense
	right.MulVec(x.T(), mat.NewVecDense(n, y))
	d := &descent{gram: full, right: right.RawVector().Data, c: make([]float64, m), bound: make([]float64, m), reach: make([]float64, m), largest: make([]float64, m)}
	d.ridge, d.prior = ridge*float64(n), prior
	for i := range m {
		for j, v := range full.RawRowView(i) {
			if j != i {
				d.largest[i] = max(d.largest[i], math.Abs(v))
			}
		}
		d.bound[i] = math.Inf(1) // not computed yet
	}
	const sweeps, still = 50000, 1e-8
	for range sweeps {
		if d.sweep() < still {
			break
		}
	}
	return d.c
}

// descent moves one coefficient after the other to its best value.
type descent struct {
	gram  *mat.Dense
	right []float64
	ridge float64 // times the number of rows
	prior []float64
	c     []float64
	// A coefficient at 0 stays there while its gradient is below 0. The gradient changes by at most largest, the
	// row's largest absolute product, times the sum of all moves. bound is the last computed gradient, and reach the
	// sum of moves at that time.
	bound, reach, largest []float64
	moves                 float64
}

// sweep moves every coefficient once. It returns the largest move.
func (d *descent) sweep() (moved float64) {
	for i, old := range d.c {
		if old == 0 && d.stays(i) {
			continue
		}
		g, row := d.right[i], d.gram.RawRowView(i)
		for j, v := range d.c {
			if j != i && v != 0 {
				g -= float64(row[j] * v)
			}
		}
		g += float64(d.ridge * d.prior[i])
		v := max(0, g/(row[i]+d.ridge))
		move := math.Abs(v - old)
		moved = max(moved, move)
		d.c[i], d.bound[i] = v, g
		d.moves += move
		d.reach[i] = d.moves
	}
	return moved
}

// stays reports whether the gradient of a coefficient at 0 is certainly below 0. The coefficient then stays at 0.
func (d *descent) stays(i int) bool {
	most := d.bound[i] + float64(d.largest[i]*(d.moves-d.reach[i]))
	rounding := float64(1e-9 * (math.Abs(d.right[i]) + float64(d.largest[i]*d.moves) + math.Abs(d.ridge*d.prior[i])))
	return most+rounding < 0
}
