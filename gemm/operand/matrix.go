package operand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Matrix is an operand of Rows × Cols elements that is read on demand. Its bytes are row-major and little-endian. Its
// methods may be called from several goroutines.
type Matrix struct {
	DType      weights.DType
	Rows, Cols int

	values values // nil for a shape without values

	mu        sync.Mutex
	exponents map[weights.DType]int
}

// values are the values of a matrix's elements.
type values interface {
	// block reads rows × cols elements, starting at (row, col).
	block(ctx context.Context, row, rows, col, cols int) ([]byte, error)
	// whole returns all elements. It must be called under a guard.
	whole(ctx context.Context) (gemm.Matrix, error)
}

// Block returns the bytes of rows × cols elements, starting at (row, col). It reads no other elements if possible. For
// a [Product]'s operand, NaN and infinity in a block are a [gemm.ErrNotFinite].
func (m *Matrix) Block(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	if m == nil || m.values == nil {
		return nil, errNoValues
	}
	return m.values.block(ctx, row, rows, col, cols)
}

// Whole returns all elements. The result may share memory with a mapped file or earlier results, and must not be
// changed.
func (m *Matrix) Whole(ctx context.Context) (gemm.Matrix, error) {
	if m == nil || m.values == nil {
		return gemm.Matrix{}, errNoValues
	}
	return m.values.whole(ctx)
}

// Exponent returns the exponent of the power of two by which the source's values were multiplied to fit into the
// matrix's type; 0 if they were not multiplied. It may read the whole source.
func (m *Matrix) Exponent(ctx context.Context) (int, error) {
	if m == nil || m.values == nil {
		return 0, errNoValues
	}
	if f, ok := m.values.(*fitted); ok {
		return f.exponent(ctx)
	}
	return 0, nil
}

// errNoValues is the error of a Matrix without values, which a caller made instead of [Set.Products].
var errNoValues = errors.New("the matrix has no values: use a matrix that Set.Products returned")

// Bytes returns the size of the whole matrix in bytes.
func (m *Matrix) Bytes() int { return m.Rows * m.Cols * m.DType.Bits() / 8 }

// exponent returns the exponent of the power of two that scales m into the range of type d ([gemm.Matrix.Exponent]).
func (m *Matrix) exponent(ctx context.Context, d weights.DType) (e int, err error) {
	if d == m.DType || d.Bits() != 8 {
		return 0, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, known := m.exponents[d]; known {
		return e, nil
	}
	err = m.guard(func() error {
		all, err := m.elements(ctx)
		if err == nil {
			e = all.Exponent(d)
		}
		return err
	})
	if err == nil {
		if m.exponents == nil {
			m.exponents = map[weights.DType]int{}
		}
		m.exponents[d] = e
	}
	return e, err
}

// elements returns the elements in any order. It does not copy stored elements.
func (m *Matrix) elements(ctx context.Context) (gemm.Matrix, error) {
	if s, ok := m.values.(*stored); ok {
		return s.m, nil
	}
	return m.Whole(ctx)
}

// files returns the files that hold m's elements; nil for patterns.
func (m *Matrix) files() []string {
	if m == nil {
		return nil
	}
	switch v := m.values.(type) {
	case *stored:
		return []string{v.file}
	case *coded:
		return v.w.Files()
	case *fitted:
		return append(v.from.files(), v.scale.files()...)
	}
	return nil
}

// guard runs read, which may read mapped memory, and returns memory faults as errors.
func (m *Matrix) guard(read func() error) error {
	if s, ok := m.values.(*stored); ok {
		return weights.Guard(s.file, read)
	}
	return read()
}

// SameBytes reports whether both matrices are stored in files and have the same bytes, type and shape.
func (m *Matrix) SameBytes(other *Matrix) bool {
	if other == nil {
		return false
	}
	if c, ok := m.values.(*coded); ok {
		d, ok := other.values.(*coded)
		return ok && c.expert == d.expert && c.transposed == d.transposed && c.w.SameBytes(d.w)
	}
	a, ok := m.values.(*stored)
	b, okB := other.values.(*stored)
	return ok && okB && a.transposed == b.transposed && a.m.DType == b.m.DType && a.m.Rows == b.m.Rows && a.m.Cols == b.m.Cols &&
		bytes.Equal(weights.Need(a.m.Data), weights.Need(b.m.Data))
}

// fit returns m in type d, multiplied by the power of two that scales the matrix scale into d's range. Operands to be
// compared use the same matrix scale.
func (m *Matrix) fit(d weights.DType, scale *Matrix) *Matrix {
	if scale.values == nil {
		scale = m
	}
	return &Matrix{DType: d, Rows: m.Rows, Cols: m.Cols, values: &fitted{m, d, scale}}
}

// fitted is a matrix converted to another type.
type fitted struct {
	from  *Matrix
	to    weights.DType
	scale *Matrix
}

func (f *fitted) exponent(ctx context.Context) (int, error) {
	if f.from.DType == f.to {
		return 0, nil
	}
	return f.scale.exponent(ctx, f.to)
}

func (f *fitted) block(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	e, err := f.exponent(ctx)
	if err != nil {
		return nil, err
	}
	data, err := f.from.Block(ctx, row, rows, col, cols)
	if err != nil {
		return nil, err
	}
	m := gemm.Matrix{DType: f.from.DType, Rows: rows, Cols: cols, Data: data}
	if err := m.Finite(); err != nil {
		return nil, fmt.Errorf("the block that starts at row %d, column %d is %w", row, col, err)
	}
	m, err = m.Fit(f.to, e)
	return m.Data, err
}

func (f *fitted) whole(ctx context.Context) (gemm.Matrix, error) {
	e, err := f.exponent(ctx)
	if err != nil {
		return gemm.Matrix{}, err
	}
	m, err := f.from.Whole(ctx)
	if err != nil {
		return m, err
	}
	return m.Fit(f.to, e)
}
