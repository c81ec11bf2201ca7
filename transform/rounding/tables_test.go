package rounding

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestTables: choosers, lattices and losses have the recorded numbers, in every format.
func TestTables(t *testing.T) {
	var b strings.Builder
	for _, d := range allTypes {
		f := format(t, d)
		from, to := ordinary(f)
		fmt.Fprintf(&b, "%s: %+v, %x %x\n", d, LatticeOf(f), from, to)
		prices := make([]float64, f.MantBits+2)
		for i := range prices {
			prices[i] = 0.3 + 0.05*float64(i)
		}
		for _, c := range []Tabulated{Stored{f}, Bits{Format: f, Zeroed: 1}, Bits{Format: f, Zeroed: f.MantBits}, Grid{Format: f, Exponents: []int{1, 2, 3}}, Grid{Format: f, Exponents: []int{1}},
			Trellis{Format: f, Rates: Rates{Significant: prices}}, Trellis{Format: f, Rates: Rates{Significant: prices}, Lambda: 0.5, Scale: 2}, Trellis{Format: f, Rates: Rates{Significant: prices, Differ: 0.1, Run: 4}, Lambda: 0.5, Scale: 2}} {
			table, ok := c.Table(3, 2)
			fmt.Fprintf(&b, "%T: %v %v %.6g %v %d %v, alike", c, ok, table.Kind, table.Prices, table.Scale, table.Zeroed, table.Exponents)
			for _, o := range []Table{{Kind: table.Kind, Format: f, Scale: table.Scale, Zeroed: table.Zeroed}, {Kind: BitsKind, Format: f}, {Kind: table.Kind, Format: f, Scale: 9, Zeroed: table.Zeroed}, {Kind: table.Kind, Format: f, Scale: table.Scale, Zeroed: 7}} {
				fmt.Fprintf(&b, " %v", table.Alike(o))
			}
			if a, ok := c.(Alone); ok {
				fmt.Fprintf(&b, ", alone %v", a.Alone())
			}
			fmt.Fprintln(&b)
		}
		l := latticeOf(f)
		for _, v := range []float32{0, 0.3, -0.3, 1e-9, -7.77, 100.4, 1e9, float32(math.Ldexp(1.3, 1-f.Bias))} {
			fmt.Fprintf(&b, "%g: %v %d", v, l.clamp(v), l.spacing(v))
			for m := range 4 {
				fmt.Fprintf(&b, " %v", l.round(v, m))
			}
			fmt.Fprintln(&b)
		}
	}
	for _, l := range []Loss{{}, {Error: 1}, {Signal: 1}, {Error: 1, Signal: 100}, {Error: 2, Signal: 0.5}, {Error: 1, Signal: math.NaN()}} {
		fmt.Fprintf(&b, "%+v: %.6g dB, scale %.6g %.6g\n", l, l.Decibels(), l.Scale(1), l.Scale(200))
	}
	for _, damp := range []float64{-1, 0, 1e-5, 0.1, math.Inf(1), math.NaN()} {
		for _, diagonal := range [][]float32{{0, 0}, {1, 3, 2}} {
			v, err := Damping(diagonal, damp)
			fmt.Fprintf(&b, "damping %v of %v: %.6g %v\n", damp, diagonal, v, err)
		}
	}
	for _, first := range [][]int{nil, {2}, {0, 3}, {4}, {-1}, {1, 1}} {
		order, err := Order([]float32{1, 3, 2, 3}, first)
		fmt.Fprintf(&b, "%v first: %v %v\n", first, order, err)
	}
	goldenfile.Same(t, "testdata/tables.txt", []byte(b.String()))
}

// TestTriangle: a triangle has the upper half of a matrix, and numbers that no Hessian has are errors with their place.
func TestTriangle(t *testing.T) {
	for n := range 6 {
		h := sgemm.Dense(n, n, nil)
		for i := range n {
			for j := range n {
				h.Row(i)[j] = float32(10*(i+1) + j)
			}
		}
		tri := NewTriangle(h)
		var want []float32
		for i := range n {
			want = append(want, h.Row(i)[i:]...)
		}
		if tri.Width != n || !slices.Equal(tri.Data, want) || !slices.Equal(tri.Diagonal(), diagonalOf(h)) || tri.Check() != nil {
			t.Errorf("%d: %+v, %v", n, tri, tri.Check())
		}
		at := 0
		for i := range n {
			for j := i; j < n; j++ {
				for _, v := range []float32{float32(math.Inf(1)), float32(math.NaN()), -1} {
					was := tri.Data[at]
					tri.Data[at] = v
					err := tri.Check()
					if wrong := v != -1 || i == j; wrong != (err != nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("(%d, %d)", i, j)) {
						t.Errorf("%v at (%d, %d): %v", v, i, j, err)
					}
					tri.Data[at] = was
				}
				at++
			}
		}
	}
	f := format(t, weights.BF16)
	v := Values{Rows: 4, Cols: 3, Format: f}
	for i := range 12 {
		v.Data = append(v.Data, 0, 0)
		f.SetElem(v.Data, i, f.FromValue(float32(i)))
	}
	m := sgemm.Dense(2, 3, nil)
	if v.Decode(m, 1); !slices.Equal(m.Data, []float32{3, 4, 5, 6, 7, 8}) {
		t.Errorf("%v", m.Data)
	}
}

// TestCodesOfRows: without feedback, rows get the codes that Round chooses.
func TestCodesOfRows(t *testing.T) {
	book := NewCodeBook([]float32{-4, -2, -1, 0, 1, 2, 4, 8}, nil)
	priced := book.Priced(func(v, scale, zero float32) float64 { return math.Abs(float64(v*scale + zero)) }, 0.4)
	other := NewCodeBook([]float32{-3, 0, 3, 5, 6, 7, 9, 11}, func(c byte) bool { return c != 3 })
	for _, c := range []*Codes{
		{Books: []*CodeBook{book}, Scales: []float32{1, 0.5, 2, 3, 0.25, 1}, Rows: 2, Groups: 2, Group: []int32{0, 1, 1, 0, 1}, Zero: 1},
		{Books: []*CodeBook{priced, other}, Which: []uint16{0, 1, 1, 0, 0, 1}, Scales: []float32{1, 0.5, 2, 3, 0.25, 1}, Zeros: []uint8{0, 1, 2, 0, 1, 3}, Rows: 2, Groups: 2, Group: []int32{0, 0, 1, 1, 0}, Lambda: 0.4, Scale: 1},
	} {
		w := normal(7, 6, 5)
		for i := range w.Data {
			w.Data[i] *= 3
		}
		q, err := Round(t.Context(), w, Flat(5), c, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		row, err := c.Row(6, 5)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 6 {
			codes := make([]byte, 5)
			row(codes, n, w.Row(n))
			for k := range codes {
				if want := c.Code(n, k, q.Row(n)[k]); codes[k] != want {
					t.Errorf("row %d, column %d: code %d, want %d", n, k, codes[k], want)
				}
			}
		}
		if c.Alone() {
			t.Error("codes do not depend on their scales")
		}
	}
}
