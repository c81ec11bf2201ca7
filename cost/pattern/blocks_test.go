package pattern

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// TestBlocksAreBounded: a block is made if its rows and columns lie in a matrix of at most 2^42 elements, and refused otherwise.
func TestBlocksAreBounded(t *testing.T) {
	p := MustParse("uniform(-1,1)")
	sizes := []int{-1, 0, 1, 3, 1 << 21, 1<<21 + 1, 1 << 42, 1<<42 + 1, math.MaxInt}
	for _, rows := range sizes {
		for _, cols := range sizes {
			fits := rows >= 0 && cols >= 0 && float64(rows)*float64(cols) <= 1<<42
			_, err := p.Block(t.Context(), Spec{DType: weights.BF16, Rows: rows, Cols: cols}, Range{}, Range{})
			if (err == nil) != fits {
				t.Errorf("%d×%d: %v", rows, cols, err)
			}
		}
	}
	spec := Spec{DType: weights.F32, Rows: 3, Cols: 4, Seed: 1}
	for from := -1; from <= 5; from++ {
		for to := -1; to <= 5; to++ {
			for axis, n := range []int{3, 4} {
				ranges := [2]Range{{0, 3}, {0, 4}}
				ranges[axis] = Range{from, to}
				data, err := p.Block(t.Context(), spec, ranges[0], ranges[1])
				fits := from >= 0 && to >= from && to <= n
				if (err == nil) != fits || fits && len(data) != ranges[0].len()*ranges[1].len()*4 {
					t.Errorf("%v: %d bytes, %v", ranges, len(data), err)
				}
			}
		}
	}
}
