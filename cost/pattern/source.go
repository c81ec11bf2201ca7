package pattern

import (
	"math/bits"
	"sync"

	"github.com/lowtoggle/lowtoggle/weights"
)

// run is the number of values that are drawn into a buffer at a time.
const run = 256

var buffers = sync.Pool{New: func() any { return new([run]float64) }}

// drawn returns a field whose elements are drawn independently.
func (s *stage) drawn(c call) *field {
	return s.alter(nil, func(data []byte, row, col int) { c.encode(s.format, data, s.dice.row(row), col) })
}

// encode draws the elements of one row from col on, and rounds them into data.
func (c call) encode(f weights.Format, data []byte, row dice, col int) {
	values := buffers.Get().(*[run]float64)
	defer buffers.Put(values)
	var rounded [run]float32
	for size := f.Bits / 8; len(data) > 0; {
		n := min(run, len(data)/size)
		c.op.draw(values[:n], c.args, row, col)
		for i, v := range values[:n] {
			rounded[i] = float32(v)
		}
		f.Encode(data, rounded[:n])
		data, col = data[n*size:], col+n
	}
}

func drawNormal(values []float64, args []any, row dice, col int) {
	mean, sigma := args[0].(float64), args[1].(float64)
	row.units(values, col)
	normals(values)
	for i, v := range values {
		values[i] = mean + float64(sigma*v)
	}
}

func drawUniform(values []float64, args []any, row dice, col int) {
	low, high := args[0].(float64), args[1].(float64)
	row.units(values, col)
	for i, v := range values {
		values[i] = low + float64((high-low)*v)
	}
}

func drawConst(values []float64, args []any, _ dice, _ int) {
	for i := range values {
		values[i] = args[0].(float64)
	}
}

func drawZeros(values []float64, _ []any, _ dice, _ int) { clear(values) }

// makeSet draws the set with the dice of row −1, which has no elements. Then it draws a member of the set for every
// element.
func makeSet(s *stage, args []any, _ *field) (*field, error) {
	f, n := s.format, args[0].(int)
	set := make([]byte, n*f.Bits/8)
	args[1].(call).encode(f, set, s.dice.row(-1), 0)
	return s.alter(nil, func(data []byte, row, col int) {
		dice := s.dice.row(row)
		for i := range len(data) / (f.Bits / 8) {
			pick, _ := bits.Mul64(dice.at(col+i), uint64(n))
			f.SetElem(data, i, f.Elem(set, int(pick)))
		}
	}), nil
}
