package pattern

import "github.com/lowtoggle/lowtoggle/weights"

// makeTranspose returns a local field if inner is local. Otherwise it makes inner as a whole first, because every
// block would need all of inner's rows.
func makeTranspose(s *stage, _ []any, inner *field) (*field, error) {
	if !inner.local {
		var err error
		if inner, err = s.across().whole(inner, nil); err != nil {
			return nil, err
		}
	}
	return s.transposed(inner), nil
}

// transposed swaps inner's rows and columns.
func (s *stage) transposed(inner *field) *field {
	f := s.format
	turned := s.matrix(inner.local, func(dst []byte, rows, cols Range) error {
		turned := make([]byte, len(dst))
		if err := inner.fill(turned, cols, rows); err != nil {
			return err
		}
		turn(f, dst, turned, cols.len(), rows.len())
		return nil
	})
	turned.tall = true
	return turned
}

// turn writes the transpose of src, rows × cols elements, to dst. It works tile by tile, so that the cache lines of
// both stay in the cache.
func turn(f weights.Format, dst, src []byte, rows, cols int) {
	const tile = 32
	for r0 := 0; r0 < rows; r0 += tile {
		for c0 := 0; c0 < cols; c0 += tile {
			for c := c0; c < min(c0+tile, cols); c++ {
				for r := r0; r < min(r0+tile, rows); r++ {
					f.SetElem(dst, c*rows+r, f.Elem(src, r*cols+c))
				}
			}
		}
	}
}

// makeRepeat copies the first row and column of every run to the whole run.
func makeRepeat(s *stage, args []any, inner *field) (*field, error) {
	perRow, perCol, size := args[0].(int), args[1].(int), s.format.Bits/8
	return s.matrix(inner.local, func(dst []byte, rows, cols Range) error {
		width := cols.len() * size
		from := cols.From / perCol * perCol
		var line []byte // inner's row, from the start of the first run on
		if perCol > 1 {
			line = make([]byte, (cols.To-from)*size)
		}
		for r := rows.From; r < rows.To; r++ {
			out := dst[(r-rows.From)*width:][:width]
			if r > rows.From && r%perRow != 0 {
				copy(out, dst[(r-rows.From-1)*width:][:width])
				continue
			}
			first := r / perRow * perRow
			if perCol == 1 {
				line = out
			}
			if err := inner.fill(line, Range{first, first + 1}, Range{from, cols.To}); err != nil {
				return err
			}
			for c := cols.From; perCol > 1 && c < cols.To; c++ {
				s.format.SetElem(out, c-cols.From, s.format.Elem(line, c/perCol*perCol-from))
			}
		}
		return nil
	}), nil
}

// makeCycle repeats the first rows and columns periodically.
func makeCycle(s *stage, args []any, inner *field) (*field, error) {
	period := func(arg any, all int) int {
		if n := arg.(int); n > 0 {
			return min(n, all)
		}
		return all
	}
	perRow, perCol, size := period(args[0], s.rows), period(args[1], s.cols), s.format.Bits/8
	return s.matrix(inner.local, func(dst []byte, rows, cols Range) error {
		width := cols.len() * size
		for r := rows.From; r < rows.To; r++ {
			out := dst[(r-rows.From)*width:][:width]
			if r-rows.From >= perRow {
				copy(out, dst[(r-rows.From-perRow)*width:][:width])
				continue
			}
			row := Range{r % perRow, r%perRow + 1}
			for c := cols.From; c < cols.To; {
				to := min(c-c%perCol+perCol, cols.To)
				part := out[(c-cols.From)*size : (to-cols.From)*size]
				if c-perCol >= cols.From {
					copy(part, out[(c-perCol-cols.From)*size:])
				} else if err := inner.fill(part, row, Range{c % perCol, c%perCol + to - c}); err != nil {
					return err
				}
				c = to
			}
		}
		return nil
	}), nil
}

// across is the transposed stage.
func (s *stage) across() *stage { return &stage{s.builder, s.cols, s.rows, s.dice} }

// onColumns is whole on the transpose, so that do gets columns as rows.
func (s *stage) onColumns(inner *field, do func(data []byte) error) (*field, error) {
	across := s.across()
	turned, err := makeTranspose(across, nil, inner)
	if err != nil {
		return nil, err
	}
	if turned, err = across.whole(turned, do); err != nil {
		return nil, err
	}
	return s.whole(s.transposed(turned), nil)
}
