package experiment

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// exponents returns the powers of two by which x and w are divided so that no result can overflow. x and w are
// the norms of their longest rows. By Cauchy–Schwarz the product of the norms bounds every result and every
// partial sum. Half of the largest finite value leaves room for rounding. If only the weights change, x stays
// unscaled.
func (s Setup) exponents(x, w float64) (ex, ew int) {
	f, ok := s.Type.Output().Format()
	if !ok { // int32, in which no sum of a product overflows
		return 0, 0
	}
	limit := float64(f.Value(f.MaxFinite)) / 2
	over := x * w / limit
	if over <= 1 {
		return 0, 0
	}
	fraction, e := math.Frexp(over) // 2^e ≥ over
	if fraction == 0.5 {
		e--
	}
	if s.Change == Weights {
		return 0, e
	}
	return (e + 1) / 2, (e + 1) / 2
}

// scale divides by 2^e into a new matrix, as the pattern step scale(2^-e) does. lost counts the elements that
// became zero.
func (o operand) scale(e, workers int) (m gemm.Matrix, p pattern.Pattern, lost int, err error) {
	if e == 0 {
		return o.Matrix, o.pattern, 0, nil
	}
	if p, err = o.pattern.With(fmt.Sprintf("scale(2^-%d)", e)); err != nil {
		return m, p, 0, err
	}
	f, _ := o.DType.Format()
	factor := math.Ldexp(1, -e)
	shrink := func(b uint32) uint32 { return f.FromValue(float32(float64(f.Value(b)) * factor)) }
	if f.Bits <= 16 {
		shrink = tabled(f.Bits, shrink)
	}
	m = gemm.NewMatrix(o.DType, o.Rows, o.Cols)
	zeroed := make([]int, o.Rows)
	parallel.Do(o.Rows, workers, func(r int) {
		for i := r * o.Cols; i < (r+1)*o.Cols; i++ {
			was := f.Elem(o.Data, i)
			is := shrink(was)
			if is&^f.SignMask() == 0 && was&^f.SignMask() != 0 {
				zeroed[r]++
			}
			f.SetElem(m.Data, i, is)
		}
	})
	for _, n := range zeroed {
		lost += n
	}
	return m, p, lost, nil
}

// longestRow returns the Euclidean norm of the longest row. It is not finite if an element is not.
func longestRow(m gemm.Matrix, workers int) float64 {
	f, _ := m.DType.Format()
	square := func(b uint32) float64 { v := float64(f.Value(b)); return v * v }
	if f.Bits <= 16 {
		square = tabled(f.Bits, square)
	}
	squares := make([]float64, m.Rows)
	parallel.Do(m.Rows, workers, func(r int) {
		sum := 0.0
		for i := r * m.Cols; i < (r+1)*m.Cols; i++ {
			sum += square(f.Elem(m.Data, i))
		}
		squares[r] = sum
	})
	longest := 0.0
	for _, s := range squares {
		longest = max(longest, s) // NaN stays
	}
	return math.Sqrt(longest)
}

// tabled replaces a function of an element's bits by a table.
func tabled[T any](bits int, of func(uint32) T) func(uint32) T {
	table := make([]T, 1<<bits)
	for b := range table {
		table[b] = of(uint32(b))
	}
	return func(b uint32) T { return table[b] }
}
