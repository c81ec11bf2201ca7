package gemm

import (
	"errors"
	"fmt"
	"math"
)

// ErrNotFinite marks operands or results that hold NaNs or infinities.
var ErrNotFinite = errors.New("not finite")

// Finite reports, as an ErrNotFinite that counts them and names the first, NaNs and infinities
// among m's elements.
func (m Matrix) Finite() error {
	f := m.format()
	var found specials
	for i := range m.Rows * m.Cols {
		if b := f.Elem(m.Data, i); !f.Finite(b) {
			found.add(float64(f.Value(b)), i)
		}
	}
	return found.err(m.Cols)
}

// FiniteResult is [Matrix.Finite] for y[M,N], a backend's result.
func FiniteResult(p Problem, y []float64) error {
	if err := finite(y, p.N); err != nil {
		return fmt.Errorf("product %v: y is %w", p, err)
	}
	return nil
}

// finite is Matrix.Finite for results of cols columns.
func finite(y []float64, cols int) error {
	var found specials
	for i, v := range y {
		if v-v != 0 {
			found.add(v, i)
		}
	}
	return found.err(cols)
}

// specials counts values that are not finite.
type specials struct{ nan, inf, first int }

func (s *specials) add(v float64, at int) {
	if s.nan+s.inf == 0 {
		s.first = at
	}
	if math.IsNaN(v) {
		s.nan++
	} else {
		s.inf++
	}
}

func (s specials) err(cols int) error {
	if s.nan+s.inf == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d NaN and %d infinite values, the first at row %d, column %d", ErrNotFinite, s.nan, s.inf, s.first/cols, s.first%cols)
}
