package pattern

import "math"

// tabled replaces a function of elements by a table of all its values, if the table is smaller than the block.
func tabled[T any](s *stage, of func(b uint32) T) func(b uint32) T {
	if s.format.Bits > 16 || s.area < 1<<s.format.Bits {
		return of
	}
	table := make([]T, 1<<s.format.Bits)
	for b := range table {
		table[b] = of(uint32(b))
	}
	return func(b uint32) T { return table[b] }
}

// mapped returns a field whose elements are functions of inner's elements.
func (s *stage) mapped(inner *field, of func(b uint32) uint32) *field {
	f := s.format
	of = tabled(s, of)
	return s.alter(inner, func(data []byte, _, _ int) {
		for i := range len(data) / (f.Bits / 8) {
			f.SetElem(data, i, of(f.Elem(data, i)))
		}
	})
}

// arithmetic makes steps from functions of values. They are computed in float64 and rounded to the type. Values that
// are not finite do not change.
func arithmetic(with func(args []any) func(v float64) float64) func(*stage, []any, *field) (*field, error) {
	return func(s *stage, args []any, inner *field) (*field, error) {
		f, of := s.format, with(args)
		return s.mapped(inner, func(b uint32) uint32 {
			if !f.Finite(b) {
				return b
			}
			return f.FromValue(float32(of(float64(f.Value(b)))))
		}), nil
	}
}

func shiftValue(args []any) func(float64) float64 {
	by := args[0].(float64)
	return func(v float64) float64 { return v + by }
}

func scaleValue(args []any) func(float64) float64 {
	by := args[0].(float64)
	return func(v float64) float64 { return v * by }
}

func absValue([]any) func(float64) float64 { return math.Abs }

func clipValue(args []any) func(float64) float64 {
	limit := args[0].(float64)
	return func(v float64) float64 { return max(-limit, min(v, limit)) }
}

func quantizeValue(args []any) func(float64) float64 {
	step := args[0].(float64)
	return func(v float64) float64 { return float64(math.RoundToEven(v/step)*step) + 0 } // zero is always positive
}
