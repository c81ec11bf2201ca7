package gemm

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Exponent returns the exponent of the power of two that scales m for type d. For an 8-bit type it scales m's largest
// element to the top of d's range. For other types it is 0. Exponent panics if d has no format.
func (m Matrix) Exponent(d weights.DType) int {
	if d == m.DType || d.Bits() != 8 {
		return 0
	}
	largest := m.largest()
	if largest == 0 || math.IsInf(largest, 0) {
		return 0
	}
	return min(100, math.Ilogb(float64(MaxOf(d))/largest)) // larger exponents overflow float32
}

// Fit returns m times 2^exponent in type d. Matrices to be compared need the same exponent. If d is m's type, Fit
// returns m itself. NaN and infinity are errors, and so are values beyond the range of a type of more than 8 bits. Fit
// panics if d has no format.
func (m Matrix) Fit(d weights.DType, exponent int) (Matrix, error) {
	if d == m.DType {
		return m, nil
	}
	if err := m.Finite(); err != nil {
		return m, err
	}
	if largest, most := m.largest(), float64(MaxOf(d)); d.Bits() > 8 && largest > most {
		return m, fmt.Errorf("an element of magnitude %.3g exceeds the range of %s (%.3g)", largest, d, most)
	}
	return m.cast(d, exponent), nil
}

// MaxOf returns the largest value of d. It panics if d has no format.
func MaxOf(d weights.DType) float32 {
	f, ok := d.Format()
	if !ok {
		panic(fmt.Sprintf("gemm.MaxOf: %s has no format", d))
	}
	return f.Value(f.FromValue(math.MaxFloat32))
}

// largest returns the largest magnitude of an element.
func (m Matrix) largest() (v float64) {
	f := m.format()
	for i := range m.Rows * m.Cols {
		v = max(v, math.Abs(float64(f.Value(f.Elem(m.Data, i)))))
	}
	return v
}
