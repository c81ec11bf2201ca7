package cost

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Operand returns a block of a row-major matrix: rows×cols elements from (row, col) on, little-endian. One goroutine
// at a time calls it, for blocks within the matrix.
type Operand func(ctx context.Context, row, rows, col, cols int) ([]byte, error)

// matrix is an operand [rows, k]. It may be only partly available.
type matrix struct {
	f       weights.Format
	rows, k int
	// seenRows and seenK are the available parts.
	seenRows, seenK [][2]int
	block           Operand
	// alongK reports whether neighbours in memory are neighbours along K; else they are along the rows.
	alongK bool
	// rms is the scale of the random elements in the baseline; 0: the scale of a sample of this matrix.
	rms float64
}

func operandMatrix(f weights.Format, rows, k int, o Operand) matrix {
	return matrix{f, rows, k, [][2]int{{0, rows}}, [][2]int{{0, k}}, o, true, 0}
}

// matrix returns the weights with outputs as rows, in either storage.
func (w Weights) matrix() (matrix, error) {
	f, ok := w.DType.Format()
	if !ok || len(w.Bands) == 0 || w.Rows < 1 || w.Cols < 1 {
		return matrix{}, fmt.Errorf("weights of type %s, shape [%d %d] and %d bands cannot be predicted: give a type with a format, rows, columns and bands", w.DType, w.Rows, w.Cols, len(w.Bands))
	}
	size := f.Bits / 8
	stride := w.Cols * size
	var seen [][2]int
	for _, b := range w.Bands {
		if len(b.Data) == 0 || len(b.Data)%stride != 0 || b.First < 0 || b.First+len(b.Data)/stride > w.Rows {
			return matrix{}, fmt.Errorf("a band of %d bytes that begins at row %d does not fit into weights of type %s and shape [%d %d]", len(b.Data), b.First, w.DType, w.Rows, w.Cols)
		}
		seen = append(seen, [2]int{b.First, b.First + len(b.Data)/stride})
	}
	stored := func(_ context.Context, row, rows, col, cols int) ([]byte, error) {
		out := make([]byte, 0, rows*cols*size)
		for r := row; r < row+rows; r++ {
			for _, b := range w.Bands {
				if at := (r - b.First) * stride; at >= 0 && at < len(b.Data) {
					out = append(out, b.Data[at+col*size:at+(col+cols)*size]...)
				}
			}
		}
		return out, nil
	}
	if w.OutAxis == 0 {
		return matrix{f, w.Rows, w.Cols, seen, [][2]int{{0, w.Cols}}, stored, true, w.Scale}, nil
	}
	turned := func(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
		data, err := stored(ctx, col, cols, row, rows)
		out := make([]byte, len(data))
		for r := range rows {
			for c := range cols {
				copy(out[(r*cols+c)*size:][:size], data[(c*rows+r)*size:])
			}
		}
		return out, err
	}
	return matrix{f, w.Cols, w.Rows, [][2]int{{0, w.Cols}}, seen, turned, false, w.Scale}, nil
}

// read returns a block and checks its size.
func (m *matrix) read(ctx context.Context, row, rows, col, cols int) ([]byte, error) {
	data, err := m.block(ctx, row, rows, col, cols)
	if err == nil && len(data) != rows*cols*m.f.Bits/8 {
		err = fmt.Errorf("a block of %d×%d elements needs %d bytes, and the operand's function returned %d", rows, cols, rows*cols*m.f.Bits/8, len(data))
	}
	return data, err
}

// chunk returns a part of memory, at a place given by two numbers from 0 to 1.
func (m *matrix) chunk(ctx context.Context, u, v float64) ([]byte, error) {
	length := chunk * 8 / m.f.Bits
	if m.alongK {
		row, _ := place(m.seenRows, u, 1, 1)
		col, n := place(m.seenK, v, length, chunk/4)
		return m.read(ctx, row, 1, col, n)
	}
	col, _ := place(m.seenK, u, 1, 1)
	row, n := place(m.seenRows, v, length, chunk/4)
	return m.read(ctx, row, n, col, 1)
}

// place chooses n neighbours within one of the ranges, by u from 0 to 1. The first one is a multiple of unit after
// the range's start. If no range has n elements, it chooses the whole longest range.
func place(ranges [][2]int, u float64, n, unit int) (from, length int) {
	slots := func(r [2]int) int { return max(0, (r[1]-r[0]-n)/unit+1) }
	all, longest := 0, ranges[0]
	for _, r := range ranges {
		if r[1]-r[0] >= n {
			all += slots(r)
		}
		if r[1]-r[0] > longest[1]-longest[0] {
			longest = r
		}
	}
	if all == 0 {
		return longest[0], longest[1] - longest[0]
	}
	at := min(int(u*float64(all)), all-1)
	for _, r := range ranges {
		if r[1]-r[0] < n {
			continue
		}
		if at < slots(r) {
			return r[0] + at*unit, n
		}
		at -= slots(r)
	}
	panic("cost: no range contains the index")
}
