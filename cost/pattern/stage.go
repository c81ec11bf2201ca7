package pattern

import (
	"context"
	"errors"
	"io"

	"github.com/lowtoggle/lowtoggle/weights"
)

// builder makes the fields of one pattern's calls.
type builder struct {
	ctx     context.Context
	format  weights.Format
	seed    uint64
	workers int
	area    int // elements of the requested block
	opened  []io.Closer
}

func (b *builder) close() error {
	var errs []error
	for _, c := range b.opened {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// stage is the context in which an operation makes its field.
type stage struct {
	*builder
	rows, cols int // shape of the result
	dice       dice
}

// field returns the field of the last call, built on the fields of the previous calls.
func (b *builder) field(calls []call, rows, cols int) (*field, error) {
	last := len(calls) - 1
	c := calls[last]
	var inner *field
	if last > 0 {
		innerRows, innerCols := rows, cols
		if c.op.turns {
			innerRows, innerCols = cols, rows
		}
		var err error
		if inner, err = b.field(calls[:last], innerRows, innerCols); err != nil {
			return nil, err
		}
	}
	s := &stage{b, rows, cols, newDice(b.seed, last)}
	if c.op.draw != nil {
		return s.drawn(c), nil
	}
	return c.op.make(s, c.args, inner)
}

// matrix returns a field of the stage's shape.
func (s *stage) matrix(local bool, fill func(dst []byte, rows, cols Range) error) *field {
	return &field{rows: s.rows, cols: s.cols, size: s.format.Bits / 8, fill: fill, local: local}
}

// alter returns a field that fills blocks from inner, if there is one. It then calls run for each row of the block,
// with the place of the row's first element.
func (s *stage) alter(inner *field, run func(data []byte, row, col int)) *field {
	size := s.format.Bits / 8
	f := s.matrix(inner == nil || inner.local, func(dst []byte, rows, cols Range) error {
		if inner != nil {
			if err := inner.fill(dst, rows, cols); err != nil {
				return err
			}
		}
		width := cols.len() * size
		for r := rows.From; r < rows.To; r++ {
			run(dst[:width], r, cols.From)
			dst = dst[width:]
		}
		return nil
	})
	f.tall = inner != nil && inner.tall
	return f
}

// byRow returns a field whose rows do makes in place from whole rows of inner.
func (s *stage) byRow(inner *field, do func(row []byte)) *field {
	size := s.format.Bits / 8
	f := s.matrix(false, func(dst []byte, rows, cols Range) error {
		width := cols.len() * size
		if cols.len() == s.cols { // no row needs room besides dst
			if err := inner.fill(dst, rows, cols); err != nil {
				return err
			}
			for ; len(dst) > 0; dst = dst[width:] {
				do(dst[:width])
			}
			return nil
		}
		row := make([]byte, s.cols*size)
		for r := rows.From; r < rows.To; r++ {
			if err := inner.fill(row, Range{r, r + 1}, Range{0, s.cols}); err != nil {
				return err
			}
			do(row)
			copy(dst, row[cols.From*size:cols.To*size])
			dst = dst[width:]
		}
		return nil
	})
	f.tall = inner.tall
	return f
}

// whole returns a field in memory: inner's matrix after do changed it in place.
func (s *stage) whole(inner *field, do func(data []byte) error) (*field, error) {
	data, err := inner.block(s.ctx, Range{0, inner.rows}, Range{0, inner.cols}, s.workers)
	if err == nil && do != nil && len(data) > 0 {
		err = do(data)
	}
	if err != nil {
		return nil, err
	}
	return s.inMemory(data), nil
}

func (s *stage) inMemory(data []byte) *field {
	f := s.matrix(true, nil)
	f.stored = data
	f.fill = func(dst []byte, rows, cols Range) error {
		copyBlock(dst, data, f.cols*f.size, f.size, rows, cols)
		return nil
	}
	return f
}

// copyBlock copies a block of a matrix whose rows are stride bytes apart.
func copyBlock(dst, data []byte, stride, size int, rows, cols Range) {
	width := cols.len() * size
	for r := rows.From; r < rows.To; r++ {
		at := r*stride + cols.From*size
		copy(dst[:width], data[at:at+width])
		dst = dst[width:]
	}
}
