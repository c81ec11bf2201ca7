package nnls

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// TestSolve: no coefficient can be moved, within what is allowed, to a lesser error.
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

// TestCollinear: of two columns that differ by a millionth, the one that explains y gets its coefficient.
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
