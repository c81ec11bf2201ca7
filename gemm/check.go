package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Deviation is the deviation of a result from the reference.
type Deviation struct {
	Relative float64 `json:"relative"`  // ‖y−r‖/‖r‖ over the compared elements; a small ‖r‖ is replaced as in [Tolerance]
	Worst    float64 `json:"worst"`     // largest ratio of |y−r| to the element's tolerance
	Row      int     `json:"row"`       // row of the worst element
	Col      int     `json:"col"`       // column of the worst element
	Compared int     `json:"compared"`  // number of compared elements
	AllOfIt  bool    `json:"all_of_it"` // false if a large result was sampled
}

// maxCheck is the largest M·N·K that Compare computes completely on the CPU, which takes about a tenth of a second.
const maxCheck = 1 << 28

// Compare compares y[M,N], a GPU's result, with [Multiply] of the operands and their scales. All elements of y must be
// finite. For a large product it compares the first and last rows and columns and a random sample of the others. It
// returns an error for an element outside the tolerance, with the element's position and deviation.
func Compare(p Problem, x, w Matrix, y []float64) (Deviation, error) {
	if err := p.Fits(x, w); err != nil {
		return Deviation{}, err
	}
	if len(y) != p.M*p.N {
		return Deviation{}, fmt.Errorf("product %v: the result must have M·N elements, and has %d", p, len(y))
	}
	for _, o := range []struct {
		name string
		err  error
	}{{"x", x.Finite()}, {"w", w.Finite()}} {
		if o.err != nil {
			return Deviation{}, fmt.Errorf("product %v: %s is %w", p, o.name, o.err)
		}
	}
	if err := finite(y, p.N); err != nil {
		return Deviation{}, fmt.Errorf("product %v: y is %w", p, err)
	}
	rows, cols := sample(p)
	part := p
	part.M, part.N = len(rows), len(cols)
	xs, ws := x.scaled(rows), w.scaled(cols)
	if x.Scales != nil || w.Scales != nil { // the tolerance is that of p's type in any case
		part.Type = arith.FP32
		xs, ws = xs.cast(weights.F32, 0), ws.cast(weights.F32, 0)
	}
	want, err := Multiply(part, xs, ws)
	if err != nil {
		return Deviation{}, err
	}
	d := deviation(p, norms(xs), norms(ws), want, func(i, j int) float64 { return y[rows[i]*p.N+cols[j]] })
	d.Row, d.Col = rows[d.Row], cols[d.Col]
	d.AllOfIt = d.Compared == len(y)
	return d, d.within(p)
}

// deviation compares got(row, column) with want. xnorm and wnorm are the norms of the operand rows for want's rows and
// columns. Row and Col of the result are positions in want.
func deviation(p Problem, xnorm, wnorm, want []float64, got func(i, j int) float64) Deviation {
	d, tol := Deviation{Compared: len(want)}, p.Tolerance()
	var diff, size, random float64
	for i := range xnorm {
		for j := range wnorm {
			r := want[i*len(wnorm)+j]
			e := math.Abs(got(i, j) - r)
			most := xnorm[i] * wnorm[j]
			diff, size, random = diff+e*e, size+r*r, random+most*most/float64(p.K)
			allowed := tol.Output*math.Abs(r) + tol.Sum*most + tol.Smallest
			if e > 0 && e/allowed > d.Worst { // allowed may be 0
				d.Worst, d.Row, d.Col = min(e/allowed, math.MaxFloat64), i, j
			}
		}
	}
	diff = max(0, math.Sqrt(diff)-tol.Smallest*math.Sqrt(float64(len(want))))
	if diff > 0 {
		d.Relative = min(diff/math.Sqrt(max(size, random)), math.MaxFloat64)
	}
	return d
}

func (d Deviation) within(p Problem) error {
	if d.Worst > 1 {
		return fmt.Errorf("product %v: the result is wrong: the error of element (%d, %d) is %.3g times the limit of %v", p, d.Row, d.Col, d.Worst, p.Type)
	}
	if r := p.Tolerance().Relative; d.Relative > r {
		return fmt.Errorf("product %v: the result is wrong: the error is %.3g of the result's norm; the limit of %v is %.3g", p, d.Relative, p.Type, r)
	}
	return nil
}

// sample selects rows and columns of y whose reference needs at most maxCheck multiplications.
func sample(p Problem) (rows, cols []int) {
	side := int(math.Sqrt(float64(maxCheck) / float64(p.K)))
	m := min(p.M, max(side, maxCheck/p.K/p.N, 2))
	n := min(p.N, max(side, maxCheck/p.K/m, 2))
	rng := rand.New(rand.NewPCG(uint64(p.M), uint64(p.N)))
	return choose(rng, p.M, m), choose(rng, p.N, n)
}

// choose returns count of the numbers 0…n−1 in ascending order. If count ≥ 2, they include the first and the last
// number.
func choose(rng *rand.Rand, n, count int) []int {
	if count >= n {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	chosen := map[int]bool{0: true, n - 1: true}
	for len(chosen) < count {
		chosen[rng.IntN(n)] = true
	}
	out := make([]int, 0, len(chosen))
	for i := range chosen {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// norms returns the Euclidean norm of every row.
func norms(m Matrix) []float64 {
	v, out := m.floats(), make([]float64, m.Rows)
	for r := range out {
		for _, e := range v[r*m.Cols : (r+1)*m.Cols] {
			out[r] += float64(e) * float64(e)
		}
		out[r] = math.Sqrt(out[r])
	}
	return out
}
