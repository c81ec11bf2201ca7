package weights

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// lawOfGrid checks the laws of rounding one value to the grid.
func lawOfGrid(t rapid.TB, f Format, b uint32, e int) {
	t.Helper()
	g := f.Grid(e)
	r := g.Nearest(b)
	bad := func(what string) { t.Fatalf("%s step 2^%d: %#x became %#x: %s", f.DType, e, b, r, what) }
	if want := g.byArithmetic(b); r != want {
		t.Fatalf("%s step 2^%d: %#x became %#x, by arithmetic %#x", f.DType, e, b, r, want)
	}
	if !f.Finite(b) {
		if r != b {
			bad("NaN or infinity changed")
		}
		return
	}
	v, w, step := float64(f.Value(b)), float64(f.Value(r)), math.Ldexp(1, e)
	largest := float64(f.Value(f.MaxFinite))
	switch q := w / step; {
	case !f.Finite(r):
		bad("NaN or infinity made")
	case q != math.Trunc(q):
		bad("no multiple")
	case g.Nearest(r) != r:
		bad("not idempotent")
	case math.Abs(w-v) > step/2 && math.Abs(v)+step/2 <= largest:
		bad("more than half a step away")
	case math.Abs(w-v) >= step && math.Abs(v) <= largest:
		bad("a step away")
	case v == math.Trunc(v/step)*step && w != v:
		bad("a multiple moved")
	case w == 0 && r != 0:
		bad("a negative zero")
	case f.IsFloat() && f.Value(g.Nearest(b^f.SignMask())) != float32(-w):
		bad("not odd")
	}
}

func TestGridLaws(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	for d, exps := range map[DType][2]int{
		BF16: {-12, 3}, F16: {-26, 17}, F8E4M3: {-12, 11}, F8E5M2: {-19, 18}, I8: {-3, 9},
	} {
		f := formatOf(d)
		for e := exps[0]; e <= exps[1]; e++ {
			for b := range uint32(1) << f.Bits {
				lawOfGrid(t, f, b, e)
			}
		}
	}
	for _, e := range []int{-140, -134, -133, -127, -126, -100, 100, 126, 127, 128, 130} { // BF16's ends
		for b := range uint32(1) << 16 {
			lawOfGrid(t, formatOf(BF16), b, e)
		}
	}
}

func TestGridF32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, near := rapid.Uint32().Draw(t, "bits"), rapid.IntRange(-27, 4).Draw(t, "exponent")
		f := formatOf(F32)
		lawOfGrid(t, f, b, int(b&f.ExpMask()>>23)-127+near)
	})
}

func TestGridApplyEqualsNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := formatOf(rapid.SampledFrom([]DType{F32, F16, BF16, F8E4M3, F8E5M2, I8}).Draw(t, "type"))
		g := f.Grid(rapid.IntRange(-30, 20).Draw(t, "exponent"))
		data := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "data")
		was := append([]byte(nil), data...)
		g.Apply(data)
		for i := range 16 / (f.Bits / 8) {
			if got, want := f.Elem(data, i), g.Nearest(f.Elem(was, i)); got != want {
				t.Fatalf("element %d is %#x, want %#x", i, got, want)
			}
		}
	})
}

// TestGridApplyOfBF16: every value, at steps of all sizes.
func TestGridApplyOfBF16(t *testing.T) {
	f := formatOf(BF16)
	data, was := make([]byte, 2<<16), make([]byte, 2<<16)
	for b := range uint32(1) << 16 {
		f.SetElem(was, int(b), b)
	}
	for _, e := range []int{-140, -133, -101, -100, -99, -60, -9, -8, -1, 0, 1, 60, 99, 100, 101, 126, 130} {
		g := f.Grid(e)
		copy(data, was)
		g.Apply(data)
		for b := range uint32(1) << 16 {
			if got, want := f.Elem(data, int(b)), g.Nearest(b); got != want {
				t.Fatalf("step 2^%d: %#x became %#x, want %#x", e, b, got, want)
			}
		}
	}
}

// TestGridExponent: no other power of two is nearer by ratio.
func TestGridExponent(t *testing.T) {
	for v, want := range map[float64]int{1: 0, 2: 1, 0.25: -2, 1.41: 0, 1.42: 1, 3: 2, 0x1p-1070: -1070, 0: 0, -1: 0} {
		if got := GridExponent(v); got != want {
			t.Errorf("%g: %d, want %d", v, got, want)
		}
	}
	if GridExponent(math.Inf(1)) != 0 || GridExponent(math.NaN()) != 0 {
		t.Error("what is not finite has an exponent")
	}
	rapid.Check(t, func(t *rapid.T) {
		v := math.Ldexp(rapid.Float64Range(1, 2).Draw(t, "mantissa"), rapid.IntRange(-200, 200).Draw(t, "exponent"))
		if ratio := v / math.Ldexp(1, GridExponent(v)); ratio*ratio > 2*(1+1e-12) || ratio*ratio < 0.5*(1-1e-12) {
			t.Fatalf("%g: 2^%d is off by %g", v, GridExponent(v), ratio)
		}
	})
}
