package pattern

import (
	"context"
	"fmt"
	"runtime"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// mostRows is the largest number of rows or columns, and mostElements the largest number of elements.
const (
	mostRows     = 1 << 40
	mostElements = 1 << 42
)

// Generate makes the whole matrix, Rows·Cols elements, row-major and little-endian, with the given number of workers
// (at least one). The bytes depend only on the pattern and the spec. Cancelling ctx returns the context's error.
func (p Pattern) Generate(ctx context.Context, s Spec, workers int) ([]byte, error) {
	return p.generate(ctx, s, Range{0, s.Rows}, Range{0, s.Cols}, workers)
}

// Block makes a block of Generate's matrix, row-major. A local pattern computes only the block. Any other pattern
// computes the required parts of the matrix, which may be the whole matrix, on all processors.
func (p Pattern) Block(ctx context.Context, s Spec, rows, cols Range) ([]byte, error) {
	return p.generate(ctx, s, rows, cols, runtime.GOMAXPROCS(0))
}

func (p Pattern) generate(ctx context.Context, s Spec, rows, cols Range, workers int) (data []byte, err error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	if p.text == "" {
		return nil, errNoPattern
	}
	format, ok := s.DType.Format()
	switch {
	case !ok:
		return nil, fmt.Errorf("a pattern cannot have the type %s: use %s", s.DType, weights.FormatNames("or"))
	case s.Rows < 0 || s.Cols < 0 || s.Cols > 0 && s.Rows > mostElements/s.Cols:
		return nil, fmt.Errorf("a matrix of %d × %d elements: both numbers must be 0 or more, and their product at most 2^42", s.Rows, s.Cols)
	case rows.From < 0 || rows.To < rows.From || rows.To > s.Rows, cols.From < 0 || cols.To < cols.From || cols.To > s.Cols:
		return nil, fmt.Errorf("rows %d to %d and columns %d to %d are not a block of a matrix of %d × %d elements", rows.From, rows.To, cols.From, cols.To, s.Rows, s.Cols)
	}
	calls := p.calls()
	b := &builder{ctx: ctx, format: format, seed: s.Seed, workers: max(1, workers), area: rows.len() * cols.len()}
	if !local(calls) {
		b.area = s.Rows * s.Cols
	}
	defer func() {
		if closing := b.close(); err == nil {
			err = closing
		}
	}()
	f, err := b.field(calls, s.Rows, s.Cols)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, ctx.Err()
	}
	return f.block(ctx, rows, cols, b.workers)
}
