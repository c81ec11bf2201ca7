package pattern

import "math"

// makeSort sorts the lowest share of the matrix to its front: in row-major order, in column-major order, or within
// every row.
func makeSort(s *stage, args []any, inner *field) (*field, error) {
	f, share := s.format, args[0].(float64)
	lowest := func(data []byte) int {
		return int(math.RoundToEven(share * float64(len(data)/(f.Bits/8))))
	}
	sorted := func(data []byte) error { return sortLowest(s.ctx, f, data, lowest(data)) }
	switch args[1].(string) {
	case "within":
		return s.byRow(inner, func(row []byte) {
			_ = sortLowest(s.ctx, f, row, lowest(row)) // fails only if the context is cancelled
		}), nil
	case "columns":
		return s.onColumns(inner, sorted)
	}
	return s.whole(inner, sorted)
}
