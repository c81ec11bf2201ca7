package gemm

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Exponent is that of the power of two by which m is multiplied to be stored in type d: where d has
// 8 bits, the one that brings m's largest element to the top of its range, else 0. It panics where
// d has no format.
func (m Matrix) Exponent(d weights.DType) int {
	if d == m.DType || d.Bits() != 8 {
		return 0
	}
	largest := m.largest()
	if largest == 0 || math.IsInf(largest, 0) {
		return 0
	}
	return min(100, math.Ilogb(float64(MaxOf(d))/largest)) // beyond, float32 ends
}

// Fit returns m times 2^exponent in type d, as it would be stored to be multiplied in it: matrices
// that are compared take the same exponent. NaNs, infinities, and values beyond the range of a
// type of more than 8 bits are errors; m itself comes back where d is its type. It panics where d
// has no format.
func (m Matrix) Fit(d weights.DType, exponent int) (Matrix, error) {
	if d == m.DType {
		return m, nil
	}
	if err := m.Finite(); err != nil {
		return m, err
	}
	if largest, most := m.largest(), float64(MaxOf(d)); d.Bits() > 8 && largest > most {
		return m, fmt.Errorf("an element of magnitude %.3g is beyond what %s holds (%.3g)", largest, d, most)
	}
	return m.cast(d, exponent), nil
}

// MaxOf is the largest value of d, a type that has a format.
func MaxOf(d weights.DType) float32 {
	f := Matrix{DType: d}.format()
	return f.Value(f.FromValue(math.MaxFloat32))
}

// largest magnitude among m's elements.
func (m Matrix) largest() (v float64) {
	f := m.format()
	for i := range m.Rows * m.Cols {
		v = max(v, math.Abs(float64(f.Value(f.Elem(m.Data, i)))))
	}
	return v
}
