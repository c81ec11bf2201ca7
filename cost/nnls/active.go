package nnls

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// SolveActive is [Solve] by the active-set method of Lawson and Hanson on the normal equations. A ridge above 0 makes
// these positive definite. For nearly collinear columns, SolveActive is exact and fast, and Solve is neither.
// Built-in calibrations have Solve's coefficients, to the last digit.
func SolveActive(x *mat.Dense, y []float64, ridge float64, prior []float64) []float64 {
	if x == nil || x.IsEmpty() {
		return nil
	}
	n, m := x.Dims()
	p := &problem{right: make([]float64, m)}
	p.gram.SymOuterK(1, x.T())
	var right mat.VecDense
	right.MulVec(x.T(), mat.NewVecDense(n, y))
	largest := 0.0
	for j := range m {
		p.gram.SetSym(j, j, p.gram.At(j, j)+float64(ridge*float64(n)))
		p.right[j] = right.AtVec(j) + float64(ridge*float64(n)*prior[j])
		largest = max(largest, math.Abs(p.right[j]))
	}
	const small = 1e-11
	c, free := make([]float64, m), make([]bool, m)
	for range 10 * m {
		next, steepest := -1, small*largest
		for j := range m {
			if g := p.gradient(c, j); !free[j] && g > steepest {
				next, steepest = j, g
			}
		}
		if next < 0 {
			break
		}
		free[next] = true
		p.descend(c, free)
	}
	return c
}

// problem holds the normal equations: gram·c = right.
type problem struct {
	gram  mat.SymDense
	right []float64
}

// gradient returns half of the negative derivative of the squared error by coefficient j.
func (p *problem) gradient(c []float64, j int) float64 {
	g := p.right[j]
	for i, v := range c {
		g -= float64(p.gram.At(j, i) * v)
	}
	return g
}

// descend moves c to the least error over the free coefficients. A coefficient that would fall below 0 on the way
// becomes 0 and is no longer free.
func (p *problem) descend(c []float64, free []bool) {
	for {
		goal := p.least(free)
		if goal == nil {
			return
		}
		step, stop := 1.0, -1
		for j := range c {
			if free[j] && goal[j] <= 0 {
				if s := c[j] / (c[j] - goal[j]); stop < 0 || s < step {
					step, stop = s, j
				}
			}
		}
		for j := range c {
			if free[j] {
				c[j] += float64(step * (goal[j] - c[j]))
			}
		}
		if stop < 0 {
			return
		}
		c[stop], free[stop] = 0, false
	}
}

// least solves the normal equations for the free coefficients; all others are 0. If none is free, it returns nil.
func (p *problem) least(free []bool) []float64 {
	var places []int
	for j, is := range free {
		if is {
			places = append(places, j)
		}
	}
	if len(places) == 0 {
		return nil
	}
	part, right := mat.NewSymDense(len(places), nil), mat.NewVecDense(len(places), nil)
	for a, i := range places {
		right.SetVec(a, p.right[i])
		for b, j := range places[:a+1] {
			part.SetSym(a, b, p.gram.At(i, j))
		}
	}
	var factors mat.Cholesky
	var found mat.VecDense
	if !factors.Factorize(part) || factors.SolveVecTo(&found, right) != nil {
		return nil
	}
	goal := make([]float64, len(free))
	for a, i := range places {
		goal[i] = found.AtVec(a)
	}
	return goal
}
