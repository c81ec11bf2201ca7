package cli

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
		whole := gemm.Matrix{DType: from, Rows: rows, Cols: cols, Data: data}
		info := weights.Info{Name: "w", DType: from, Shape: []int{rows, cols}}
		b := matrixBlocks(whole, false, "")
		like := b
		switch rapid.SampledFrom([]string{"matrix", "transpose", "pattern"}).Draw(t, "of") {
		case "transpose":
			b = matrixBlocks(whole, true, "")
			if whole, err = gemm.FromTensor(weights.Tensor{Info: info, Data: data}, 1); err != nil {
				t.Fatal(err)
			}
		case "pattern":
			if b, err = patternBlocks(usual(text), spec); err != nil {
				t.Fatal(err)
			}
		}
		fitted, err := whole.Fit(to, whole.Exponent(to))
		if err != nil {
			t.Skip() // beyond what the type holds
		}
		if b, err = b.fit(to, like); err != nil || b.rows != whole.Rows || b.cols != whole.Cols {
			t.Fatalf("%d×%d (%v)", b.rows, b.cols, err)
		}
		r, c := rapid.IntRange(0, b.rows-1).Draw(t, "row"), rapid.IntRange(0, b.cols-1).Draw(t, "col")
		n, k := rapid.IntRange(1, b.rows-r).Draw(t, "n"), rapid.IntRange(1, b.cols-c).Draw(t, "k")
		have, err := b.at(context.Background(), r, n, c, k)
		if err != nil {
			t.Fatal(err)
		}
		size := to.Bits() / 8
		var want []byte
		for i := r; i < r+n; i++ {
			want = append(want, fitted.Data[(i*b.cols+c)*size:(i*b.cols+c+k)*size]...)
		}
		if !bytes.Equal(have, want) {
			t.Fatalf("%d×%d from %d, %d: %x, want %x", n, k, r, c, have, want)
		}
	})
}

// TestBlocksReadNoMore: what a tensor holds beyond a block may be missing.
func TestBlocksReadNoMore(t *testing.T) {
	m := gemm.Matrix{DType: weights.BF16, Rows: 1 << 40, Cols: 8, Data: bytes.Repeat([]byte{0x80, 0x3f}, 64*8)}
	for _, transposed := range []bool{false, true} {
		b := matrixBlocks(m, transposed, "m")
		b, err := b.fit(weights.F32, b)
		if err != nil {
			t.Fatal(err)
		}
		rows, cols := 64, 8
		if transposed {
			rows, cols = cols, rows
		}
		if data, err := b.at(t.Context(), 0, rows, 0, cols); err != nil || len(data) != 4*64*8 {
			t.Errorf("%d bytes (%v)", len(data), err)
		}
	}
}

// TestNotFinite: nothing is predicted of NaN, and of a type's range no more than it holds.
func TestNotFinite(t *testing.T) {
	m := gemm.NewMatrix(weights.BF16, 4, 4)
	f, _ := weights.BF16.Format()
	f.SetElem(m.Data, 9, 0x7fc0)
	b, err := matrixBlocks(m, false, "m").fit(weights.BF16, blocks{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.at(t.Context(), 0, 2, 0, 4); err != nil {
		t.Error(err)
	}
	if _, err := b.at(t.Context(), 2, 2, 1, 3); !errors.Is(err, gemm.ErrNotFinite) || !strings.Contains(err.Error(), "from row 2 and column 1") {
		t.Error(err)
	}
}
