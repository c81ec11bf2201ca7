package pattern

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/lowtoggle/lowtoggle/weights"
)

func makeReorder(s *stage, args []any, inner *field) (*field, error) {
	if args[0].(string) == "rows" {
		return s.whole(inner, func(data []byte) error { return reorder(s.ctx, s.format, data, s.rows) })
	}
	return s.onColumns(inner, func(data []byte) error { return reorder(s.ctx, s.format, data, s.cols) })
}

// reorder permutes rows in place by nearest neighbours. The first row stays. After each row comes the remaining row
// that differs from it in the fewest bits, in a sample of columns. Ties go to the earlier row.
func reorder(ctx context.Context, f weights.Format, data []byte, rows int) error {
	sketch := newSketch(f, data, rows)
	order, left := make([]int, 0, rows), make([]int, rows)
	for r := range left {
		left[r] = r
	}
	for at := 0; len(left) > 0; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		row := left[at]
		order = append(order, row)
		left = append(left[:at], left[at+1:]...)
		nearest := math.MaxInt
		for i, r := range left {
			if d := sketch.distance(row, r); d < nearest {
				at, nearest = i, d
			}
		}
	}
	width := len(data) / rows
	old := append([]byte(nil), data...)
	for i, r := range order {
		copy(data[i*width:][:width], old[r*width:][:width])
	}
	return nil
}

// sketch holds evenly spread columns of a matrix: sketchWords words of bits for each row.
type sketch []uint64

const sketchWords = 16

func newSketch(f weights.Format, data []byte, rows int) sketch {
	size := f.Bits / 8
	cols := len(data) / rows / size
	n := min(cols, sketchWords*8/size)
	s := make(sketch, rows*sketchWords)
	var row [sketchWords * 8]byte
	for r := range rows {
		for i := range n {
			f.SetElem(row[:], i, f.Elem(data, r*cols+i*cols/n))
		}
		for w := range sketchWords {
			s[r*sketchWords+w] = binary.LittleEndian.Uint64(row[8*w:])
		}
	}
	return s
}

// distance returns the number of bits that differ between two rows' sketches.
func (s sketch) distance(a, b int) (n int) {
	x, y := s[a*sketchWords:][:sketchWords], s[b*sketchWords:][:sketchWords]
	for i, w := range x {
		n += bits.OnesCount64(w ^ y[i])
	}
	return n
}
