// Package nnls solves non-negative least squares.
package nnls

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Solve returns coefficients c ≥ 0 with the least ‖X·c − y‖² + ridge·n·‖c − prior‖², for n rows of X. It is coordinate
// descent on a convex problem, which ends when no coefficient of the order of 1 moves by more than 1e-8, so scale columns
// accordingly. Where columns are nearly collinear, coefficients may still be off by 1e-5. X and y are only read. An empty X has
// no coefficients.
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
	c := make([]float64, m)
	const sweeps, still = 50000, 1e-8
	for range sweeps {
		moved := 0.0
		for i := range c {
			g, row := right.AtVec(i), full.RawRowView(i)
			for j, v := range c {
				if j != i {
					g -= float64(row[j] * v)
				}
			}
			g += float64(ridge * float64(n) * prior[i])
			v := max(0, g/(row[i]+float64(ridge*float64(n))))
			moved = max(moved, math.Abs(v-c[i]))
			c[i] = v
		}
		if moved < still {
			break
		}
	}
	return c
}
