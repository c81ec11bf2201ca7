package inspect_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestQuantisedWeights: the report counts the operands' bits of every readable format. It also counts the stored codes' bits if
// the codes are not the operands.
func TestQuantisedWeights(t *testing.T) {
	calibration, err := cost.FindCalibration("h200")
	testmodel.OK(t, err)
	for _, q := range testmodel.Quantisations {
		m := testmodel.Open(t, testmodel.Quantised(t, q, testmodel.With{}))
		r, err := inspect.Model(t.Context(), m, inspect.Options{Calibration: calibration, Workload: cost.DefaultWorkload, Workers: 2})
		testmodel.OK(t, err)
		set := operand.NewSet(operand.Options{Quantised: true})
		layers, skipped, err := set.Linear(m)
		testmodel.OK(t, err)
		if len(skipped) > 0 {
			if len(r.Weights) > 0 {
				t.Errorf("%s: %d weights, none of which can be read", q.Name, len(r.Weights))
			}
			continue
		}
		want := map[string]operand.Layer{}
		for _, l := range layers {
			want[l.Name] = l
		}
		for _, w := range r.Weights {
			whole, err := want[w.Name].W.Whole(t.Context())
			testmodel.OK(t, err)
			x := weights.Tensor{Info: weights.Info{Name: w.Name, DType: whole.DType, Shape: []int{whole.Rows, whole.Cols}}, Data: whole.Data}
			a, err := cost.Measure(t.Context(), x, 1)
			testmodel.OK(t, err)
			if *w.Activity != a || !w.Linear || w.Operand != whole.DType.String() || w.Role != "linear" || (w.Packed == nil) != (whole.DType != weights.BF16) {
				t.Errorf("%s: %s: %+v, want %+v", q.Name, w.Name, w, a)
			}
			if p := w.Packed; p != nil && 2*int(p.Elements) != w.Shape[0]*w.Shape[1] {
				t.Errorf("%s: %s: %d bytes of packed codes for %v", q.Name, w.Name, p.Elements, w.Shape)
			}
		}
		// Embedding, head and norms beside 14 layers of 2 blocks.
		if n := 2*64*128 + 5*128 + 2*(4*128*128+3*128*256); len(r.Weights) != 14 || r.Elements() != n || len(r.Each()) != 14+7 {
			t.Errorf("%s: %d weights, %d elements in %d rows, want %d", q.Name, len(r.Weights), r.Elements(), len(r.Each()), n)
		}
		for _, k := range r.Kinds() {
			if k.Name == "mlp.up_proj" && (k.Tensors != 2 || !(k.RowToggles > 0) || !(k.MemoryToggles > 0)) {
				t.Errorf("%s: %+v", q.Name, k)
			}
		}
		testmodel.OK(t, set.Close())
	}
}
