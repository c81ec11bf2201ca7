package pattern

import (
	"context"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Range is the integers from From to To, without To.
type Range struct{ From, To int }

func (r Range) len() int { return r.To - r.From }

// field is a matrix. It makes any block of its elements.
type field struct {
	rows, cols int
	size       int // bytes of an element
	// fill writes a block, row-major, into dst. dst has the size of the block.
	fill func(dst []byte, rows, cols Range) error
	// local is true if the field computes only the block. Other fields compute at least the block's rows.
	local bool
	// tall is true if many rows should be made at a time, because rows are columns of the input.
	tall bool
	// stored is the whole matrix if it is in memory. The field owns it.
	stored []byte
}

// piece is the number of elements that a worker makes at a time. Their bytes stay in the worker's cache from step to
// step, and a cancelled context is noticed between two pieces.
const piece = 1 << 16

// block makes a block with several workers.
func (f *field) block(ctx context.Context, rows, cols Range, workers int) ([]byte, error) {
	if f.stored != nil && rows.len() == f.rows && cols.len() == f.cols {
		return f.stored, nil
	}
	width := cols.len() * f.size
	out := make([]byte, rows.len()*width)
	if len(out) == 0 {
		return out, nil
	}
	cost := cols.len() // cost of a row, in elements
	if !f.local {
		cost = f.cols
	}
	step, split := max(1, piece/cost), cols.len()
	switch {
	case f.local && cost > 2*piece: // parts of one row are contiguous too
		split = piece
	case f.tall:
		step = max(step, min(64, 16*piece/cost))
	}
	parts := (cols.len() + split - 1) / split // number of parts of the columns
	runs := (rows.len() + step - 1) / step    // number of runs of rows
	err := parallel.Run(ctx, runs*parts, max(1, workers), func(_ context.Context, i int) error {
		from, left := i/parts*step, i%parts*split
		to, right := min(from+step, rows.len()), min(left+split, cols.len())
		dst := out[from*width+left*f.size : (to-1)*width+right*f.size]
		return f.fill(dst, Range{rows.From + from, rows.From + to}, Range{cols.From + left, cols.From + right})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
