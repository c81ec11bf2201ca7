package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// blocks is a matrix of which any block can be had alone, by one goroutine at a time.
type blocks struct {
	dtype      weights.DType
	rows, cols int
	at         cost.Operand
	exponent   func(weights.DType) (int, error) // as Matrix.Exponent; nil for patterns
}

// matrixBlocks are those of m, which lies in a file, or of its transpose. Nothing is read before it is
// asked for.
func matrixBlocks(m gemm.Matrix, transposed bool, file string) blocks {
	b := blocks{dtype: m.DType, rows: m.Rows, cols: m.Cols}
	b.exponent = func(d weights.DType) (e int, err error) {
		err = weights.Guard(file, func() error { e = m.Exponent(d); return nil })
		return e, err
	}
	size := m.DType.Bits() / 8
	b.at = func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		data := make([]byte, 0, rows*cols*size)
		err := weights.Guard(file, func() error {
			for r := row; r < row+rows; r++ {
				from := (r*m.Cols + col) * size
				data = append(data, m.Data[from:from+cols*size]...)
			}
			return nil
		})
		return data, errors.Join(err, ctx.Err())
	}
	if transposed {
		b.rows, b.cols, b.at = m.Cols, m.Rows, transpose(b.at, size)
	}
	return b
}

// transpose turns blocks of a matrix into those of its transpose.
func transpose(at cost.Operand, size int) cost.Operand {
	return func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		from, err := at(ctx, col, cols, row, rows)
		if err != nil {
			return nil, err
		}
		data := make([]byte, 0, len(from))
		for r := range rows {
			for c := range cols {
				i := (c*rows + r) * size
				data = append(data, from[i:i+size]...)
			}
		}
		return data, nil
	}
}

// mostWhole is how large a matrix may be that has to be made whole, in bytes.
const mostWhole = 8 << 30

// patternBlocks are those of a pattern: made one by one, or, where each costs the whole matrix, cut
// from the matrix, which is made once.
func patternBlocks(s source, spec pattern.Spec) (blocks, error) {
	b := blocks{dtype: spec.DType, rows: spec.Rows, cols: spec.Cols}
	b.at = func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		return s.pattern.Block(ctx, spec, pattern.Range{From: row, To: row + rows}, pattern.Range{From: col, To: col + cols})
	}
	if s.pattern.Local() {
		return b, nil
	}
	if bytes := float64(spec.Rows) * float64(spec.Cols) * float64(spec.DType.Bits()/8); bytes > mostWhole {
		return b, fmt.Errorf("%s: one of its steps needs the whole matrix of %.0f GB, and no more than %.1f GB are made: choose a smaller --shape", s.text, bytes/1e9, mostWhole/1e9)
	}
	var whole blocks
	b.at = func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		if whole.at == nil {
			data, err := s.pattern.Generate(ctx, spec, runtime.GOMAXPROCS(0))
			if err != nil {
				return nil, err
			}
			whole = matrixBlocks(gemm.Matrix{DType: spec.DType, Rows: spec.Rows, Cols: spec.Cols, Data: data}, false, s.text)
		}
		return whole.at(ctx, row, rows, col, cols)
	}
	return b, nil
}

// fit is b in type d, scaled as like is, as Matrix.Fit makes it; a pattern has no scale to go by. A
// block that holds NaN or infinity is an error: so would be the product.
func (b blocks) fit(d weights.DType, like blocks) (_ blocks, err error) {
	e, at := 0, b.at
	if b.dtype != d {
		if like.exponent == nil {
			like = b
		}
		if e, err = like.exponent(d); err != nil {
			return b, err
		}
	}
	from := b.dtype
	b.dtype, b.exponent = d, nil
	b.at = func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		data, err := at(ctx, row, rows, col, cols)
		if err != nil {
			return nil, err
		}
		m := gemm.Matrix{DType: from, Rows: rows, Cols: cols, Data: data}
		if err := m.Finite(); err != nil {
			return nil, fmt.Errorf("the block from row %d and column %d is %w", row, col, err)
		}
		m, err = m.Fit(d, e)
		return m.Data, err
	}
	return b, nil
}
