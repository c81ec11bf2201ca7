package pattern

// makeSparse zeroes blocks. The dice of a block's row and column decide.
func makeSparse(s *stage, args []any, inner *field) (*field, error) {
	f, c, block := s.format, newChance(args[0].(float64)), args[1].(shape)
	return s.alter(inner, func(data []byte, row, col int) {
		dice := s.dice.row(row / block.rows)
		for n := len(data) / (f.Bits / 8); n > 0; {
			width := min(n, block.cols-col%block.cols)
			if c.hits(dice.at(col / block.cols)) {
				clear(data[:width*f.Bits/8])
			}
			data, col, n = data[width*f.Bits/8:], col+width, n-width
		}
	}), nil
}
