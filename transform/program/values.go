package program

import (
	"context"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// blockElems is the approximate number of elements in a block: many enough for a small overhead, and few enough for a
// core's cache.
const blockElems = 1 << 15

// blockRows returns the number of rows of a block, a multiple of the program's unit.
func (p *Program) blockRows() int {
	rows := max(1, blockElems/max(1, p.Cols))
	return max(p.Unit, rows/p.Unit*p.Unit)
}

// EachBlock runs the program over rows [first, last) and calls fn with each block of the result, in order. A block is
// valid during the call only. The only errors are the end of ctx and a nil ctx.
func (p *Program) EachBlock(ctx context.Context, first, last int, fn func(b Block)) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	step := min(p.blockRows(), last-first)
	data := make([]byte, step*p.RowBytes())
	for n := first; n < last; n += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := min(step, last-n)
		p.Run(data, n, rows)
		fn(Block{n, rows, p.Cols, data[:rows*p.RowBytes()], p.Format})
	}
	return nil
}

// EachValues is EachBlock with the decoded values of each block, row by row.
func (p *Program) EachValues(ctx context.Context, first, last int, fn func(b Block, values []float32)) error {
	values := make([]float32, min(p.blockRows(), last-first)*p.Cols)
	return p.EachBlock(ctx, first, last, func(b Block) {
		v := values[:b.Rows*p.Cols]
		p.Format.Decode(v, b.Data)
		fn(b, v)
	})
}

// Outputs returns the result's values [N, K], with outputs as rows. The only errors are the end of ctx and a nil ctx.
func (p *Program) Outputs(ctx context.Context) (sgemm.Matrix, error) { return p.outputs(ctx, 1) }

// outputs is Outputs with the given number of goroutines. It also returns an error for a fault of the mapped source.
func (p *Program) outputs(ctx context.Context, workers int) (sgemm.Matrix, error) {
	m := sgemm.Dense(p.Rows, p.Cols, nil)
	err := parallel.Spans(ctx, p.Rows, 16*p.blockRows(), workers, func(ctx context.Context, first, end int) error {
		return weights.Guard(p.File(), func() error {
			return p.EachValues(ctx, first, end, func(b Block, v []float32) { copy(m.Data[b.First*p.Cols:], v) })
		})
	})
	if p.OutAxis == 1 {
		m = transposed(m)
	}
	return m, err
}

// SourceValues returns the result's values [rows, columns] in the source's order, with signs and powers of two
// undone. These values fit a model whose other layers are the source's. The only errors are the end of ctx and a nil ctx.
func (p *Program) SourceValues(ctx context.Context, workers int) ([]float32, error) {
	out := make([]float32, p.Rows*p.Cols)
	err := parallel.Spans(ctx, p.Rows, 16*p.blockRows(), workers, func(ctx context.Context, first, end int) error {
		return weights.Guard(p.File(), func() error {
			return p.EachValues(ctx, first, end, func(b Block, v []float32) {
				if p.placed() {
					copy(out[b.First*p.Cols:], v)
					return
				}
				for i := range b.Rows {
					p.place(out, b.First+i, v[i*p.Cols:][:p.Cols])
				}
			})
		})
	})
	return out, err
}

// placed reports whether the result's values have the source's order, signs and scale.
func (p *Program) placed() bool { return p.Row.IsIdentity() && p.Col.IsIdentity() }

// place writes the values of row n of the result to their places in the source's order.
func (p *Program) place(out []float32, n int, v []float32) {
	row := at(p.Row.Gather, n, n)
	for k, x := range v {
		col := at(p.Col.Gather, k, k)
		x = ldexp(x, -at(p.Row.Exp, row, 0)-at(p.Col.Exp, col, 0))
		if at(p.Row.Flip, row, false) != at(p.Col.Flip, col, false) {
			x = -x
		}
		out[row*p.Cols+col] = x
	}
}

// Stored returns the bytes of a prepared result with the source's order, signs and scale. ok is false for other
// results, and for programs without a stored result. The bytes stay valid after Release, and the caller must not
// change them.
func (p *Program) Stored() (data []byte, ok bool) {
	if p.joint == nil || p.joint.isAlone || !p.placed() {
		return nil, false
	}
	p.joint.mu.Lock()
	defer p.joint.mu.Unlock()
	return p.joint.data, p.joint.data != nil && p.joint.bands == nil
}

func transposed(m sgemm.Matrix) sgemm.Matrix {
	t := sgemm.Dense(m.Cols, m.Rows, nil)
	const tile = 32
	for r0 := 0; r0 < m.Rows; r0 += tile {
		for c0 := 0; c0 < m.Cols; c0 += tile {
			for r := r0; r < min(r0+tile, m.Rows); r++ {
				for c := c0; c < min(c0+tile, m.Cols); c++ {
					t.Data[c*m.Rows+r] = m.Data[r*m.Cols+c]
				}
			}
		}
	}
	return t
}

// InputAxis returns the map of the symmetries along the inputs, and the number of inputs.
func (p *Program) InputAxis() (AxisMap, int) {
	if p.OutAxis == 1 {
		return p.Row, p.Rows
	}
	return p.Col, p.Cols
}

// OutputAxis returns the map of the symmetries along the outputs, and the number of outputs.
func (p *Program) OutputAxis() (AxisMap, int) {
	if p.OutAxis == 1 {
		return p.Col, p.Cols
	}
	return p.Row, p.Rows
}
