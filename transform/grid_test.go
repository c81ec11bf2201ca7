package transform

import (
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// lawOfGrid is what moving one value to the grid keeps.
func lawOfGrid(t tb, f weights.Format, b uint32, e int) {
	t.Helper()
	g := newGridStep(f, e)
	r := g.nearest(b)
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
	case g.nearest(r) != r:
		bad("not idempotent")
	case math.Abs(w-v) > step/2 && math.Abs(v)+step/2 <= largest:
		bad("more than half a step away")
	case math.Abs(w-v) >= step && math.Abs(v) <= largest:
		bad("a step away")
	case v == math.Trunc(v/step)*step && w != v:
		bad("a multiple moved")
	case w == 0 && r != 0:
		bad("a negative zero")
	case f.IsFloat() && f.Value(g.nearest(b^f.SignMask())) != float32(-w):
		bad("not odd")
	}
}

func TestGridLaws(t *testing.T) {
	for d, exps := range map[weights.DType][2]int{
		weights.BF16: {-12, 3}, weights.F16: {-26, 17}, weights.F8E4M3: {-12, 11}, weights.F8E5M2: {-19, 18}, weights.I8: {-3, 9},
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
			lawOfGrid(t, formatOf(weights.BF16), b, e)
		}
	}
}

func TestGridF32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, near := rapid.Uint32().Draw(t, "bits"), rapid.IntRange(-27, 4).Draw(t, "exponent")
		f := formatOf(weights.F32)
		lawOfGrid(t, f, b, int(b&f.ExpMask()>>23)-127+near)
	})
}

func TestGridOfOutputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "cols")
		outAxis := rapid.IntRange(0, 1).Draw(t, "output axis")
		d := rapid.SampledFrom(kinds).Draw(t, "type")
		f := formatOf(d)
		x := memory(d, []int{rows, cols}, drawBytes(t, rows*cols*f.Bits/8, "data"))
		exps := rapid.SliceOfN(rapid.IntRange(-20, 8), []int{rows, cols}[outAxis], -1).Draw(t, "exponents")[:[]int{rows, cols}[outAxis]]
		got := alone(x, outAxis).result(t, &Step{Pass: "grid", Grid: &Grid{Exponents: exps}})
		for i := range rows * cols {
			e := exps[[]int{i / cols, i % cols}[outAxis]]
			step := newGridStep(f, e)
			if want := step.byArithmetic(f.Elem(x.Data, i)); f.Elem(got.Data, i) != want {
				t.Fatalf("element %d with step 2^%d is %#x, want %#x", i, e, f.Elem(got.Data, i), want)
			}
		}
	})
}

func TestGridStepsFollowEachOutput(t *testing.T) {
	x := matrix(weights.F32, 4, []float32{1, -1, 1, -1, 8, 8, -8, 8, 0, 0, 0, 0})
	steps, err := gridPass.candidates(alone(x, 0), []string{"4"})
	ok(t, err)
	if e := steps[0].Grid.Exponents; len(steps) != 1 || e[0] != -2 || e[1] != 1 || e[2] != 0 {
		t.Errorf("exponents %v, want σ/4 of each row", e)
	}
}
