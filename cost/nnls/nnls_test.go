package nnls

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// TestSolve: no allowed move of a coefficient lowers the error.
func TestSolve(t *testing.T) { solves(t, Solve) }

func TestSolveActive(t *testing.T) { solves(t, SolveActive) }

func solves(t *testing.T, solve func(*mat.Dense, []float64, float64, []float64) []float64) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(3, 12).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "columns")
		number := rapid.Float64Range(-2, 2)
		x := mat.NewDense(n, m, nil)
		y := make([]float64, n)
		prior := make([]float64, m)
		for i := range n {
			y[i] = number.Draw(t, "y")
			for j := range m {
				x.Set(i, j, number.Draw(t, "x"))
				prior[j] = math.Abs(number.Draw(t, "prior"))
			}
		}
		const ridge = 0.05
		c := solve(x, y, ridge, prior)
		cost := func(c []float64) (sum float64) {
			for i := range n {
				e := -y[i]
				for j := range m {
					e += x.At(i, j) * c[j]
				}
				sum += e * e
			}
			for j := range m {
				sum += ridge * float64(n) * (c[j] - prior[j]) * (c[j] - prior[j])
			}
			return sum
		}
		least := cost(c)
		for j := range m {
			if c[j] < 0 {
				t.Fatalf("coefficient %d is %v", j, c[j])
			}
			for _, step := range []float64{-1e-3, 1e-3} {
				other := append([]float64{}, c...)
				other[j] = math.Max(0, c[j]+step)
				if cost(other) < least-1e-9 {
					t.Fatalf("coefficient %d at %v: %v is better by %v", j, c[j], other[j], least-cost(other))
				}
			}
		}
	})
}

// everyGradient is [Solve] without a shortcut: each sweep computes every gradient from all coefficients.
func everyGradient(x *mat.Dense, y []float64, ridge float64, prior []float64) []float64 {
	n, m := x.Dims()
	var gram mat.SymDense
	gram.SymOuterK(1, x.T())
	var right mat.VecDense
	right.MulVec(x.T(), mat.NewVecDense(n, y))
	c := make([]float64, m)
	for range 50000 {
		moved := 0.0
		for i := range c {
			g := right.AtVec(i)
			for j, v := range c {
				if j != i {
					g -= float64(gram.At(i, j) * v)
				}
			}
			g += float64(ridge * float64(n) * prior[i])
			v := max(0, g/(gram.At(i, i)+float64(ridge*float64(n))))
			moved = max(moved, math.Abs(v-c[i]))
			c[i] = v
		}
		if moved < 1e-8 {
			break
		}
	}
	return c
}

// TestSolveSkipsNothing: Solve equals everyGradient bit for bit. Columns are similar, like features, so that
// coefficients leave 0 and return to it.
func TestSolveSkipsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(2, 40).Draw(t, "rows"), rapid.IntRange(1, 12).Draw(t, "columns")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		alike := rapid.Float64Range(0, 1).Draw(t, "alike")
		x, y, prior := mat.NewDense(n, m, nil), make([]float64, n), make([]float64, m)
		for i := range n {
			shared := random.Float64()
			y[i] = shared + 0.3*random.NormFloat64()
			for j := range m {
				x.Set(i, j, alike*shared+(1-alike)*random.NormFloat64())
			}
		}
		for j := range prior {
			prior[j] = max(0, random.NormFloat64())
		}
		const ridge = 1e-4
		if have, want := Solve(x, y, ridge, prior), everyGradient(x, y, ridge, prior); !slices.Equal(have, want) {
			t.Fatalf("%v, want %v", have, want)
		}
	})
}

// TestCollinear: of two columns that differ by a millionth, the column that explains y gets the coefficient.
func TestCollinear(t *testing.T) {
	const n = 40
	x, y := mat.NewDense(n, 3, nil), make([]float64, n)
	for i := range n {
		a := 1 + float64(i%7)
		b := a + 1e-6*float64(i%3)
		x.SetRow(i, []float64{a, b, 1})
		y[i] = 2*b + 0.5
	}
	c := SolveActive(x, y, 1e-18, make([]float64, 3))
	for j, want := range []float64{0, 2, 0.5} {
		if math.Abs(c[j]-want) > 1e-3 {
			t.Errorf("%v, want 0, 2 and 0.5", c)
			break
		}
	}
}
