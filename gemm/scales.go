package gemm

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Scales multiply blocks of a matrix's elements. The element in row r and column k is multiplied by
// Values[r/Rows·⌈columns/Cols⌉ + k/Cols]. A block may be larger than the matrix.
type Scales struct {
	Values     []float32
	Rows, Cols int // size of a block
}

// fits returns an error unless every block of a matrix has a finite scale.
func (s *Scales) fits(rows, cols int) error {
	if s == nil {
		return nil
	}
	if s.Rows < 1 || s.Cols < 1 {
		return fmt.Errorf("blocks of %d×%d elements cannot share a scale: give at least 1×1", s.Rows, s.Cols)
	}
	if want := ceil(rows, s.Rows) * ceil(cols, s.Cols); len(s.Values) != want {
		return fmt.Errorf("%d scales, not %d for blocks of %d×%d in a matrix of %d×%d", len(s.Values), want, s.Rows, s.Cols, rows, cols)
	}
	for i, v := range s.Values {
		if v-v != 0 {
			return fmt.Errorf("scale %d is %w", i, ErrNotFinite)
		}
	}
	return nil
}

// multiply multiplies the elements of some rows of a matrix by their scales.
func (s *Scales) multiply(v []float32, rows []int, cols int) {
	if s == nil {
		return
	}
	across := ceil(cols, s.Cols)
	for i, r := range rows {
		line, scales := v[i*cols:(i+1)*cols], s.Values[r/s.Rows*across:]
		for k := range line {
			line[k] *= scales[k/s.Cols]
		}
	}
}

func ceil(a, b int) int { return (a-1)/b + 1 }

// scaled returns some rows of a matrix in float32, multiplied by their scales if there are any.
func (m Matrix) scaled(index []int) Matrix {
	rows := m.rows(index)
	if m.Scales == nil {
		return rows
	}
	v := rows.floats()
	m.Scales.multiply(v, index, m.Cols)
	out := NewMatrix(weights.F32, rows.Rows, rows.Cols)
	f := out.format()
	for i, e := range v {
		f.SetElem(out.Data, i, f.FromValue(e))
	}
	return out
}
