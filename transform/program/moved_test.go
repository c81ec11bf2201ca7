package program

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// axes are maps of an axis of n positions: none, an order within units, signs, and powers of two that are equal in each unit.
func axes(n int) []AxisMap {
	draw := rand.New(rand.NewPCG(uint64(n), 4))
	within, across, exps, uneven, flip := make([]int, n), make([]int, n), make([]int, n), make([]int, n), make([]bool, n)
	const unit = 128
	order := draw.Perm((n + unit - 1) / unit)
	for i := range n {
		within[i], across[i] = i^1, order[i/unit]*unit+i%unit
		exps[i], uneven[i], flip[i] = i/unit%3-1, i%3-1, i%5 == 2
	}
	if n%unit != 0 {
		across = draw.Perm(n)
	}
	return []AxisMap{{}, {Gather: within}, {Gather: across, Exp: exps}, {Flip: flip}, {Exp: uneven}, {Exp: exps, Flip: flip, Gather: within}, {Gather: draw.Perm(n)}}
}

// TestMovedCodes: every layout follows each order, sign and power of two with the recorded codes and scales, or refuses with the recorded reason.
func TestMovedCodes(t *testing.T) {
	var b strings.Builder
	for _, q := range testmodel.Quantisations {
		model, err := weights.Open(testmodel.Quantised(t, q, testmodel.With{}))
		testmodel.OK(t, err)
		t.Cleanup(func() { model.Close() })
		d, err := quant.Describe(model)
		testmodel.OK(t, err)
		w := d.Weights[0]
		if w.CanRead() != nil {
			continue
		}
		testmodel.OK(t, w.Check())
		rows, cols := axes(w.Shape[0]), axes(w.Shape[1])
		for i := range rows {
			for _, j := range []int{0, i, (i + 3) % len(cols)} {
				v, err := movedOf(w, &arch.Claim{OutAxis: 0}, rows[i], cols[j])
				fmt.Fprintf(&b, "%s, %d %d: ", q.Name, i, j)
				if err != nil || v == nil {
					fmt.Fprintf(&b, "%v\n", err)
					continue
				}
				m, err := w.Read(0)
				testmodel.OK(t, err)
				out, err := v.matrix(m)
				if err != nil {
					fmt.Fprintf(&b, "%.90s, ", err)
					if out, err = v.rows(m, 3, 9, func(row int) (*quant.Matrix, int) { return m, row }); err == nil {
						continue
					}
				}
				values := make([]float32, m.K)
				sum := sha256.New()
				for n := range out.N {
					out.Row(values, n)
					testmodel.OK(t, binary.Write(sum, binary.LittleEndian, values))
				}
				fmt.Fprintf(sum, "%v %v %v %v", out.Codes, out.Scales, out.Zeros, out.Group)
				fmt.Fprintf(&b, "%d×%d %.8x\n", out.N, out.K, sum.Sum(nil))
			}
		}
		if _, err := movedOf(w, &arch.Claim{OutAxis: 1}, rows[1], cols[0]); err == nil {
			t.Errorf("%s: inputs are rows, and codes move", q.Name)
		}
	}
	for _, s := range []float32{0, 1, -1, 0x1p-99, 0x1p99, 0x1p-14, 448, 1.5} {
		for _, exp := range []int{-1, 0, 1, 2, 127} {
			for _, book := range []quant.Book{{ScaleType: weights.F32}, {ScaleType: weights.F16}, {ScaleType: weights.F8E4M3}, {ScaleType: weights.F8E8M0}} {
				v, ok := timesPower(&book, s, exp)
				fmt.Fprintf(&b, "%s: %g·2^%d = %g %v\n", book.ScaleType, s, exp, v, ok)
			}
		}
	}
	goldenfile.Same(t, "testdata/moved.txt", []byte(b.String()))
}

// TestCarriedScales: scales follow an order only if positions under one scale stay together and take one power of two.
func TestCarriedScales(t *testing.T) {
	var b strings.Builder
	for _, a := range []AxisMap{{}, {Gather: []int{1, 0, 3, 2, 5, 4}}, {Gather: []int{4, 5, 0, 1, 2, 3}}, {Gather: []int{3, 4, 5, 0, 1, 2}}, {Exp: []int{1, 1, 2, 2, 0, 0}}, {Exp: []int{0, 1, 0, 1, 0, 1}}, {Gather: []int{2, 3, 4, 5, 0, 1}, Exp: []int{3, 3, 3, -1, -1, -1}}} {
		for _, unit := range []int{1, 2, 3, 6} {
			for _, group := range [][]int32{nil, {0, 0, 1, 1, 3, 3}} {
				c, err := carry(a, 6, unit, group)
				fmt.Fprintf(&b, "%v by %d, %v: %v, %v\n", a, unit, group, c, err)
			}
		}
		places, err := a.Places(6, []int{5, 0, 3})
		fmt.Fprintf(&b, "places %v, %v, identity %v\n", places, err, a.IsIdentity())
		for _, wrong := range [][]int{{6}, {-1}, {2, 2}, {}} {
			places, err := a.Places(6, wrong)
			fmt.Fprintf(&b, "%v %v\n", places, err)
		}
		inv := Symmetry{a.Gather, a.Flip, a.Exp}.Inverse()
		fmt.Fprintf(&b, "inverse %v\nproduct %v and %v\n", inv, product(a, 6, AxisMap{Gather: []int{1, 0}, Flip: []bool{true, false}}, 2), product(AxisMap{Exp: []int{1, -1}}, 2, a, 6))
	}
	goldenfile.Same(t, "testdata/carried.txt", []byte(b.String()))
}

// columns records the columns that a chooser gets.
type columns struct{ b *strings.Builder }

func (c columns) Begin(n, k int) (func(rounding.Column), error) {
	return func(col rounding.Column) {
		fmt.Fprintf(c.b, "  %d×%d: column %d, rows from %d: %v\n", n, k, col.K, col.N0, col.T)
	}, nil
}

// TestBands: bands count and find their rows, and a chooser for all rows gets the rows of the bands in separate columns.
func TestBands(t *testing.T) {
	var b strings.Builder
	for _, bands := range []Bands{nil, {{0, 4}}, {{2, 5}, {7, 8}, {10, 14}}} {
		fmt.Fprintf(&b, "%v: %d rows, of 9 %v; places", bands, bands.rows(), bands.of(9))
		for row := range 16 {
			fmt.Fprintf(&b, " %d", bands.find(row))
		}
		fmt.Fprintln(&b)
		if bands == nil {
			continue
		}
		choose, err := banded{columns{&b}, bands, 20}.Begin(bands.rows(), 3)
		testmodel.OK(t, err)
		for from := 0; from < bands.rows(); from += 3 {
			var part []float32
			for i := from; i < min(from+3, bands.rows()); i++ {
				part = append(part, float32(i))
			}
			choose(rounding.Column{K: 1, N0: from, T: part})
		}
		exponents := make([]int, 20)
		for i := range exponents {
			exponents[i] = 100 + i
		}
		f := testmodel.FormatOf(weights.BF16)
		for _, c := range []rounding.Chooser{rounding.Grid{Format: f, Exponents: exponents}, rounding.Bits{Format: f, Zeroed: 3}, columns{&b}} {
			table, ok := banded{c, bands, 20}.Table(bands.rows(), 3)
			fmt.Fprintf(&b, "table %v: %v, %d\n", ok, table.Exponents, table.Zeroed)
		}
	}
	goldenfile.Same(t, "testdata/bands.txt", []byte(b.String()))
}

// TestPowerOfLayers: the power of outputs and of their changes are sums of squares of finite weights.
func TestPowerOfLayers(t *testing.T) {
	nan := float32(math.NaN())
	l := &Layer{Rows: 2, Cols: 3, w: sgemm.Dense(2, 3, []float32{1, -2, 3, nan, 0.5, 4}), from: []int{2, 0, 1}}
	q := sgemm.Dense(2, 3, []float32{1, -1, 1, 7, 0.5, 2})
	signal, err := l.power(t.Context(), sgemm.Matrix{}, 1)
	testmodel.OK(t, err)
	noise, err := l.power(t.Context(), q, 1)
	if err != nil || signal != 1+4+9+0.25+16 || noise != 1+4+4 {
		t.Errorf("signal %v, noise %v (%v)", signal, noise, err)
	}
	if at := l.Positions([]int{0, 2}); at[0] != 2 || at[1] != 1 || l.Batch() != 1 {
		t.Errorf("positions %v, batches of %d", at, l.Batch())
	}
	if allFinite(l.w, 1) || !allFinite(q, 2) {
		t.Error("finite weights are not found")
	}
	for exp, want := range map[int]float32{0: 3, 1: 6, -2: 0.75} {
		if got := ldexp(3, exp); got != want {
			t.Errorf("3·2^%d = %v", exp, got)
		}
	}
}
