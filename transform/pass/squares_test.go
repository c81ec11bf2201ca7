package pass_test

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestOutputRMSOfFiniteValues: NaN and infinity do not count for an output's root mean square, in any row or column.
func TestOutputRMSOfFiniteValues(t *testing.T) {
	f := testmodel.FormatOf(weights.F32)
	for rows := 1; rows < 10; rows++ {
		const cols = 5
		v := make([]float32, rows*cols)
		for i := range v {
			v[i] = float32(i%13) - 4
		}
		x := testmodel.Matrix(weights.F32, cols, v)
		for i := range v {
			switch {
			case i%7 == 3:
				f.SetElem(x.Data, i, f.ExpMask()|f.SignMask())
			case i%11 == 5:
				f.SetElem(x.Data, i, f.ExpMask()|1)
			}
		}
		f.Decode(v, x.Data)
		for outAxis := range 2 {
			l := testplan.Alone(t, x, outAxis)
			for range 2 { // the second time from memory
				got, err := l.OutputRMS(t.Context())
				testmodel.OK(t, err)
				sum, n := make([]float64, len(got)), make([]float64, len(got))
				for i, w := range v {
					if out := []int{i / cols, i % cols}[outAxis]; w-w == 0 {
						sum[out] += float64(w) * float64(w)
						n[out]++
					}
				}
				for out, s := range sum {
					if want := math.Sqrt(s / max(1, n[out])); got[out] != want {
						t.Fatalf("%d rows, outputs %d: output %d has %g, want %g", rows, outAxis, out, got[out], want)
					}
				}
			}
		}
	}
}

// TestTiesInOrder: of tiles at the threshold, the first ones in the order of memory are zeroed, also in later blocks of rows.
func TestTiesInOrder(t *testing.T) {
	const rows, cols = 64, 2050
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = 2
	}
	x := testmodel.Matrix(weights.BF16, cols, v)
	x.Name = "w"
	l := testplan.Alone(t, x, 0)
	for _, tile := range [][2]int{{1, 1}, {16, 1}, {1, 16}, {4, 3}, {16, 2050}, {64, 64}} {
		across := (cols + tile[1] - 1) / tile[1]
		tiles := rows / tile[0] * across
		for _, ties := range []int{0, 1, across, tiles / 2, tiles - 1, tiles} {
			got := testmodel.Values(testplan.Result(t, l, pass.Sparsify.TensorStep("w", pass.Zeros{Block: &tile, Threshold: 4, Ties: ties})))
			for i, w := range got {
				if number := i/cols/tile[0]*across + i%cols/tile[1]; (w == 0) != (number < ties) {
					t.Fatalf("tiles of %v, %d at the threshold: element %d in tile %d is %g", tile, ties, i, number, w)
				}
			}
			n := float64(ties * tile[0] * tile[1])
			z, _, taken, err := pass.SmallestTiles(t.Context(), l, tile, func(_, taken float64) bool { return taken <= n })
			testmodel.OK(t, err)
			if cols%tile[1] == 0 && (taken != n || ties > 0 && ties < tiles && z.Ties != ties) {
				t.Errorf("tiles of %v, at most %g values: %+v takes %g", tile, n, z, taken)
			}
		}
	}
}
