package program_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestStepsInAnyOrder: the steps of a weight make the same values in any order of the plan.
func TestStepsInAnyOrder(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", weights.BF16)
	layout := testmodel.LayoutOf(t, m)
	steps := testplan.Make(t, m, "scale,reorder,signs,sparsify=0.2,grid=8,round=2", 0).Steps
	several := 0
	for name, own := range testplan.ByTensor(steps) {
		if len(own) < 2 {
			continue
		}
		several++
		x := testmodel.TensorOf(t, m, name)
		var want []byte
		for range 2 {
			p, err := testplan.Compiler(t, m, layout, nil, steps).Program(t.Context(), testplan.Weight(x), own)
			testmodel.OK(t, err)
			got := make([]byte, len(x.Data))
			p.Run(got, 0, p.Rows)
			if want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s: %d steps in the opposite order make other values", name, len(own))
			}
			own = slices.Clone(own)
			slices.Reverse(own)
		}
	}
	if several == 0 {
		t.Error("no weight has several steps")
	}
}
