package gemm

import (
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Matrix is an operand of Rows × Cols elements, row-major and little-endian. Its type is one of the six types with a
// [weights.Format]. Its data may lie in a mapped file and is never written.
type Matrix struct {
	DType      weights.DType
	Rows, Cols int
	Data       []byte
	// Scales multiply the elements, like the scales of FP8 codes. Default: none.
	Scales *Scales
	// Codes are the codes that a dequantising kernel reads from memory. Data then holds the values of [Codes.Matrix].
	// Default: nil, and the kernel reads Data.
	Codes *Codes
}

// Stored returns the number of bytes of the matrix that a kernel reads from memory, excluding the scales of Data.
func (m Matrix) Stored() int {
	if m.Codes != nil {
		return m.Codes.Bytes()
	}
	return len(m.Data)
}

// NewMatrix returns a matrix of zeros. It panics if d has no format.
func NewMatrix(d weights.DType, rows, cols int) Matrix {
	if _, ok := d.Format(); !ok {
		panic(fmt.Sprintf("gemm: a matrix of %v", d))
	}
	return Matrix{DType: d, Rows: rows, Cols: cols, Data: make([]byte, rows*cols*d.Bits()/8)}
}

// FromTensor returns a layer's stored weight as w[N,K]. outAxis is the stored dimension that counts outputs. For 0 the
// result shares the tensor's memory. For 1, the storage [K,N] of GPT-2's Conv1D, the result is a transposed copy.
// FromTensor returns an error with the tensor's name if the tensor is empty, not of rank two, or of a type without a
// format.
func FromTensor(t weights.Tensor, outAxis int) (Matrix, error) {
	wrong := func(what string) (Matrix, error) {
		return Matrix{}, fmt.Errorf("%s: tensor %q: %s%v %s", t.File, t.Name, t.DType, t.Shape, what)
	}
	switch _, ok := t.DType.Format(); {
	case !ok:
		return wrong("has a type that cannot be multiplied")
	case len(t.Shape) != 2:
		return wrong("is not a matrix: only weights with two dimensions can be multiplied")
	case t.Len() == 0:
		return wrong("is empty")
	}
	m := Matrix{DType: t.DType, Rows: t.Shape[0], Cols: t.Shape[1], Data: t.Data}
	if outAxis == 1 {
		return m.Transposed(), nil
	}
	return m, nil
}

func (m Matrix) format() weights.Format {
	f, _ := m.DType.Format()
	return f
}

// Transposed returns a transposed copy.
func (m Matrix) Transposed() Matrix {
	f, t := m.format(), NewMatrix(m.DType, m.Cols, m.Rows)
	for r := range m.Rows {
		for c := range m.Cols {
			f.SetElem(t.Data, c*m.Rows+r, f.Elem(m.Data, r*m.Cols+c))
		}
	}
	return t
}

// cast multiplies every element by 2^exponent and rounds it to the nearest value of d. Values beyond d's range become
// its largest value.
func (m Matrix) cast(d weights.DType, exponent int) Matrix {
	from, out := m.format(), NewMatrix(d, m.Rows, m.Cols)
	to, scale := out.format(), float32(math.Ldexp(1, exponent))
	for i := range m.Rows * m.Cols {
		to.SetElem(out.Data, i, to.FromValue(scale*from.Value(from.Elem(m.Data, i))))
	}
	return out
}

// floats decodes every element, row-major.
func (m Matrix) floats() []float32 {
	v := make([]float32, m.Rows*m.Cols)
	m.format().Decode(v, m.Data)
	return v
}

// rows copies the rows with the given indices, in the given order.
func (m Matrix) rows(index []int) Matrix {
	out := NewMatrix(m.DType, len(index), m.Cols)
	stride := m.Cols * m.DType.Bits() / 8
	for i, r := range index {
		copy(out.Data[i*stride:(i+1)*stride], m.Data[r*stride:])
	}
	return out
}
