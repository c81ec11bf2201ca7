package cost

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// nonNegative finds coefficients c ≥ 0 with the least ‖X·c − y‖² + ridge·n·‖c − prior‖² by going from
// one coordinate to the next until none moves; the problem is convex.
func nonNegative(x *mat.Dense, y []float64, ridge float64, prior []float64) []float64 {
	n, m := x.Dims()
	var gram mat.SymDense
	gram.SymOuterK(1, x.T())
	var right mat.VecDense
	right.MulVec(x.T(), mat.NewVecDense(n, y))
	c := make([]float64, m)
	const sweeps, still = 50000, 1e-8
	for range sweeps {
		moved := 0.0
		for i := range c {
			g := right.AtVec(i)
			for j, v := range c {
				if j != i {
					g -= gram.At(i, j) * v
				}
			}
			g += ridge * float64(n) * prior[i]
			v := math.Max(0, g/(gram.At(i, i)+ridge*float64(n)))
			moved = math.Max(moved, math.Abs(v-c[i]))
			c[i] = v
		}
		if moved < still {
			break
		}
	}
	return c
}
