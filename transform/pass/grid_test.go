package pass_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestGridOfOutputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "cols")
		outAxis := rapid.IntRange(0, 1).Draw(t, "output axis")
		d := rapid.SampledFrom(testmodel.DTypes).Draw(t, "type")
		f := formatOf(d)
		x := memory(d, []int{rows, cols}, testmodel.DrawBytes(t, rows*cols*f.Bits/8, "data"))
		exps := rapid.SliceOfN(rapid.IntRange(-20, 8), []int{rows, cols}[outAxis], -1).Draw(t, "exponents")[:[]int{rows, cols}[outAxis]]
		got := result(t, alone(t, x, outAxis), pass.Grid.TensorStep("w", pass.Steps{Exponents: exps}))
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
	steps, err := pass.Grid.Candidates(t.Context(), alone(t, x, 0), []string{"4"})
	ok(t, err)
	if e := steps[0].(pass.Steps).Exponents; len(steps) != 1 || e[0] != -2 || e[1] != 1 || e[2] != 0 {
		t.Errorf("exponents %v, want σ/4 of each row", e)
	}
}
