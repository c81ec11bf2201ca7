package operand

import (
	"context"
	"errors"
	"sync"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// stored is a matrix in a file, or its transpose.
type stored struct {
	m          gemm.Matrix // as stored in the file
	transposed bool
	file       string

	mu     sync.Mutex
	turned *gemm.Matrix // whole transpose, computed on first use
}

// newStored returns a file's matrix m or its transpose. It reads nothing.
func newStored(m gemm.Matrix, transposed bool, file string) *Matrix {
	out := &Matrix{DType: m.DType, Rows: m.Rows, Cols: m.Cols, values: &stored{m: m, transposed: transposed, file: file}}
	if transposed {
		out.Rows, out.Cols = m.Cols, m.Rows
	}
	return out
}

func (s *stored) block(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	if s.transposed {
		data, err := s.cut(ctx, col, cols, row, rows)
		if err != nil {
			return nil, err
		}
		return gemm.Matrix{DType: s.m.DType, Rows: cols, Cols: rows, Data: data}.Transposed().Data, nil
	}
	return s.cut(ctx, row, rows, col, cols)
}

// cut copies a block of the matrix as stored.
func (s *stored) cut(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	size := s.m.DType.Bits() / 8
	data := make([]byte, 0, rows*cols*size)
	err := weights.Guard(s.file, func() error {
		for r := row; r < row+rows; r++ {
			from := (r*s.m.Cols + col) * size
			data = append(data, weights.Need(s.m.Data[from:from+cols*size])...)
		}
		return nil
	})
	return data, errors.Join(err, ctx.Err())
}

func (s *stored) whole(context.Context) (gemm.Matrix, error) {
	if !s.transposed {
		return s.m, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turned == nil {
		t := s.m.Transposed()
		s.turned = &t
	}
	return *s.turned, nil
}
