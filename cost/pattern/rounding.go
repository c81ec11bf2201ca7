package pattern

import (
	"math"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights"
)

func makeRound(s *stage, args []any, inner *field) (*field, error) {
	f := s.format
	bits, truncate := min(args[0].(int), f.Zeroable()), args[1].(string) == "truncate"
	return s.mapped(inner, func(b uint32) uint32 { return f.Round(b, bits, truncate) }), nil
}

// makeGrid rounds each row to a grid. The grid's step is the root mean square of the row's finite elements, divided
// by s.
func makeGrid(s *stage, args []any, inner *field) (*field, error) {
	f, fineness := s.format, args[0].(float64)
	value := tabled(s, f.Value)
	var grids sync.Map // by the exponents of the grids
	return s.byRow(inner, func(row []byte) {
		sum, n := 0.0, 0
		for i := range len(row) / (f.Bits / 8) {
			if v := float64(value(f.Elem(row, i))); v-v == 0 {
				sum += float64(v * v)
				n++
			}
		}
		e := weights.GridExponent(math.Sqrt(sum/float64(max(1, n))) / fineness)
		g, ok := grids.Load(e)
		if !ok {
			g, _ = grids.LoadOrStore(e, f.Grid(e))
		}
		g.(*weights.Grid).Apply(row)
	}), nil
}
