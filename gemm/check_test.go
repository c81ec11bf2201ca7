package gemm

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// stored returns the reference rounded to the output's type, as a perfect GPU would give it.
func stored(t *testing.T, p Problem, x, w Matrix) []float64 {
	t.Helper()
	y, err := Multiply(p, x, w)
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := p.Type.Output().Format(); ok {
		for i, v := range y {
			y[i] = float64(f.Value(f.FromValue(float32(v))))
		}
	}
	return y
}

func TestCompareAcceptsRounding(t *testing.T) {
	for _, typ := range arith.Types() {
		for _, s := range oddShapes {
			p := Problem{M: s[0], N: s[1], K: s[2], Type: typ}
			x, w := operands(p, 5)
			d, err := Compare(p, x, w, stored(t, p, x, w))
			if err != nil || !d.AllOfIt || d.Worst > 0.5 {
				t.Errorf("%v: %v, %+v", p, err, d)
			}
		}
	}
}

// Compare must reject results of wrong data: one element from a neighbour, a transposed result, a shortened K.
func TestCompareFindsWrongElements(t *testing.T) {
	for _, typ := range arith.Types() {
		p := Problem{M: 40, N: 40, K: 1000, Type: typ}
		x, w := operands(p, 7)
		good := stored(t, p, x, w)
		broken := func(name string, f func(y []float64)) {
			y := append([]float64(nil), good...)
			f(y)
			if _, err := Compare(p, x, w, y); err == nil {
				t.Errorf("%v: %s passes", typ, name)
			}
		}
		broken("swapped neighbours", func(y []float64) { y[81], y[82] = y[82], y[81] })
		broken("a transposed result", func(y []float64) {
			for i := range 40 {
				for j := range i {
					y[i*40+j], y[j*40+i] = y[j*40+i], y[i*40+j]
				}
			}
		})
		broken("scaled by 1.1", func(y []float64) {
			for i := range y {
				y[i] *= 1.1
			}
		})
		broken("zeros", func(y []float64) { clear(y) })
	}
}

func TestCompareSamplesLargeProducts(t *testing.T) {
	p := Problem{M: 2000, N: 3000, K: 600, Type: arith.INT8}
	x, w := operands(p, 3)
	y := make([]float64, p.M*p.N)
	rows, cols := sample(p)
	if rows[0] != 0 || rows[len(rows)-1] != p.M-1 || cols[0] != 0 || cols[len(cols)-1] != p.N-1 {
		t.Errorf("the borders are not sampled: %v…%v, %v…%v", rows[0], rows[len(rows)-1], cols[0], cols[len(cols)-1])
	}
	if work := len(rows) * len(cols) * p.K; work > maxCheck || work < maxCheck/3 {
		t.Errorf("%d multiplications, the limit is %d", work, maxCheck)
	}
	d, err := Compare(p, x, w, y)
	if err == nil || d.AllOfIt || d.Compared != len(rows)*len(cols) {
		t.Errorf("%v, %+v", err, d)
	}
}

func TestNotFiniteIsNamed(t *testing.T) {
	p := Problem{M: 3, N: 4, K: 5, Type: arith.FP16}
	x, w := operands(p, 1)
	y := stored(t, p, x, w)
	y[6], y[11] = math.NaN(), math.Inf(-1)
	_, err := Compare(p, x, w, y)
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "y is not finite: 1 NaN and 1 infinite values, the first at row 1, column 2") {
		t.Error(err)
	}
	f, _ := weights.F16.Format()
	f.SetElem(w.Data, 13, 0xFC00)
	_, err = Compare(p, x, w, stored(t, p, x, w))
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "w is not finite: 0 NaN and 1 infinite values, the first at row 2, column 3") {
		t.Error(err)
	}
}

func TestFitsNamesWhatIsWrong(t *testing.T) {
	p := Problem{M: 3, N: 4, K: 5, Type: arith.BF16}
	x, w := NewMatrix(weights.BF16, 3, 5), NewMatrix(weights.BF16, 4, 5)
	short := w
	short.Data = short.Data[1:]
	for want, c := range map[string]struct {
		p    Problem
		x, w Matrix
	}{
		"3x0x5 bf16 stationary: every dimension":            {Problem{M: 3, K: 5, Type: arith.BF16}, x, w},
		"unknown arithmetic type Type(0)":                   {Problem{M: 3, N: 4, K: 5}, x, w},
		"x is F16, but bf16 multiplies BF16":                {p, NewMatrix(weights.F16, 3, 5), w},
		"w is 3×5, not 4×5":                                 {p, x, x},
		"w holds 39 bytes":                                  {p, x, short},
		"sums of more than 131071 int8":                     {Problem{M: 1, N: 1, K: 1 << 17, Type: arith.INT8}, x, w},
		"streaming: x is BF16, but fp8 multiplies F8_E4M3:": {Problem{M: 3, N: 4, K: 5, Type: arith.FP8, Streaming: true}, x, w},
	} {
		if err := c.p.Fits(c.x, c.w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
	if err := p.Fits(x, w); err != nil {
		t.Error(err)
	}
}
