package transform

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

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
			if want := f.Grid(e).Nearest(f.Elem(x.Data, i)); f.Elem(got.Data, i) != want {
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
