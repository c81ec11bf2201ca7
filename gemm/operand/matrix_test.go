package operand

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// cut copies a block of a whole matrix.
func cut(m gemm.Matrix, row, rows, col, cols int) (block []byte) {
	size := m.DType.Bits() / 8
	for i := row; i < row+rows; i++ {
		block = append(block, m.Data[(i*m.Cols+col)*size:(i*m.Cols+col+cols)*size]...)
	}
	return block
}

// TestBlocks: a block, of a matrix, its transpose, or a pattern that is made whole, in any type, is that
// part of the whole.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "cols")
		types := []weights.DType{weights.BF16, weights.F32, weights.F16, weights.F8E4M3, weights.I8}
		from, to := rapid.SampledFrom(types).Draw(t, "from"), rapid.SampledFrom(types).Draw(t, "to")
		text := rapid.SampledFrom([]string{"normal(0,3)", "normal(0,3) | sort", "const(2) | flip(1%)"}).Draw(t, "pattern")
		spec := pattern.Spec{DType: from, Rows: rows, Cols: cols, Seed: 3}
		data, err := pattern.MustParse(text).Generate(context.Background(), spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := gemm.Matrix{DType: from, Rows: rows, Cols: cols, Data: data}
		m := newStored(want, false, "")
		scale := m
		switch rapid.SampledFrom([]string{"matrix", "transpose", "pattern"}).Draw(t, "of") {
		case "transpose":
			m = newStored(want, true, "")
			info := weights.Info{Name: "w", DType: from, Shape: []int{rows, cols}}
			if want, err = gemm.FromTensor(weights.Tensor{Info: info, Data: data}, 1); err != nil {
				t.Fatal(err)
			}
		case "pattern":
			m = newDrawn(MustParse(text), spec)
		}
		want, err = want.Fit(to, want.Exponent(to))
		if err != nil {
			t.Skip() // beyond what the type holds
		}
		m = m.fit(to, scale)
		whole, err := m.Whole(context.Background())
		if err != nil || m.Rows != want.Rows || m.Cols != want.Cols || m.DType != to || !bytes.Equal(whole.Data, want.Data) {
			t.Fatalf("%d×%d %v (%v)", m.Rows, m.Cols, m.DType, err)
		}
		r, c := rapid.IntRange(0, m.Rows-1).Draw(t, "row"), rapid.IntRange(0, m.Cols-1).Draw(t, "col")
		n, k := rapid.IntRange(1, m.Rows-r).Draw(t, "n"), rapid.IntRange(1, m.Cols-c).Draw(t, "k")
		have, err := m.Block(context.Background(), r, n, c, k)
		if err != nil {
			t.Fatal(err)
		}
		if want := cut(whole, r, n, c, k); !bytes.Equal(have, want) {
			t.Fatalf("%d×%d from %d, %d: %x, want %x", n, k, r, c, have, want)
		}
	})
}

// TestBlocksReadNoMore: reading a block does not read the rest of its tensor.
func TestBlocksReadNoMore(t *testing.T) {
	stored := gemm.Matrix{DType: weights.BF16, Rows: 1 << 40, Cols: 8, Data: bytes.Repeat([]byte{0x80, 0x3f}, 64*8)}
	for _, transposed := range []bool{false, true} {
		m := newStored(stored, transposed, "m")
		m = m.fit(weights.F32, m)
		rows, cols := 64, 8
		if transposed {
			rows, cols = cols, rows
		}
		if data, err := m.Block(t.Context(), 0, rows, 0, cols); err != nil || len(data) != 4*64*8 {
			t.Errorf("%d bytes (%v)", len(data), err)
		}
	}
}

// TestNotFinite: a NaN is an error for the block that contains it, and for no other block.
func TestNotFinite(t *testing.T) {
	m := gemm.NewMatrix(weights.BF16, 4, 4)
	f, _ := weights.BF16.Format()
	f.SetElem(m.Data, 9, 0x7fc0)
	b := newStored(m, false, "m")
	b = b.fit(weights.BF16, b)
	if _, err := b.Block(t.Context(), 0, 2, 0, 4); err != nil {
		t.Error(err)
	}
	if _, err := b.Block(t.Context(), 2, 2, 1, 3); !errors.Is(err, gemm.ErrNotFinite) || !strings.Contains(err.Error(), "starts at row 2, column 1") {
		t.Error(err)
	}
}

// TestTooLarge: a pattern whose blocks need the whole matrix is refused if the matrix is too large, before anything is drawn.
func TestTooLarge(t *testing.T) {
	m := newDrawn(MustParse("normal(0,1) | sort"), pattern.Spec{DType: weights.BF16, Rows: 100_000, Cols: 100_000})
	if _, err := m.Block(t.Context(), 0, 1, 0, 1); err == nil || !strings.Contains(err.Error(), "needs the whole matrix of 20 GB") {
		t.Error(err)
	}
}

// TestSameBytes: only stored matrices with the same bytes, type and shape are the same.
func TestSameBytes(t *testing.T) {
	stored := func(rows, cols int, transposed bool, value byte) *Matrix {
		return newStored(gemm.Matrix{DType: weights.I8, Rows: rows, Cols: cols, Data: bytes.Repeat([]byte{value}, rows*cols)}, transposed, "m")
	}
	a := stored(2, 3, false, 1)
	for name, c := range map[string]struct {
		b    *Matrix
		want bool
	}{
		"a copy": {stored(2, 3, false, 1), true}, "other values": {stored(2, 3, false, 2), false}, "another shape": {stored(3, 2, false, 1), false},
		"its transpose": {stored(3, 2, true, 1), false}, "a draw": {newDrawn(MustParse("const(1)"), pattern.Spec{DType: weights.I8, Rows: 2, Cols: 3}), false},
	} {
		if have := a.SameBytes(c.b); have != c.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}
