package gemm

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Fit returns m in type d, as it would be stored to be multiplied in it. Types of 8 bits hold it
// times 2^exponent, the power that brings its largest element to the top of their range, and others
// as it is. NaNs, infinities, and values beyond the range of a wider type are errors; m itself
// comes back where d is its type. It panics where d has no format.
func (m Matrix) Fit(d weights.DType) (fitted Matrix, exponent int, err error) {
	if d == m.DType {
		return m, 0, nil
	}
	if err := m.Finite(); err != nil {
		return m, 0, err
	}
	largest, most := m.largest(), float64(MaxOf(d))
	switch {
	case d.Bits() == 8 && largest > 0:
		exponent = math.Ilogb(most / largest)
	case largest > most:
		return m, 0, fmt.Errorf("an element of magnitude %.3g is beyond what %s holds (%.3g)", largest, d, most)
	}
	return m.cast(d, exponent), exponent, nil
}

// MaxOf is the largest value of d. It panics where d has no format.
func MaxOf(d weights.DType) float32 {
	f := NewMatrix(d, 1, 1).format()
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
