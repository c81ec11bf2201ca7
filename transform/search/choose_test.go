package search_test

import (
	"context"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestBudgetOfBlocksIsThatOfTheWholeLayer: an explicit request is compared with the budget on the whole tensor, not
// on a sample.
func TestBudgetOfBlocksIsThatOfTheWholeLayer(t *testing.T) {
	const rows, cols = 1024, 256
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(1 + i%7)
		if i/cols%64 < 16 {
			v[i] /= 10
		}
	}
	l := testplan.Alone(t, testmodel.Matrix(weights.F32, cols, v), 0)
	least := 5.0
	l.Budget.MinSNR = &least
	_, out, err := search.Choose(t.Context(), l, testplan.Passes(t, "sparsify=0.3/16x1"))
	testmodel.OK(t, err)
	if out.Missed != "" || out.SNR == nil || *out.SNR < 10 {
		t.Errorf("zeroing the small rows is refused: %+v", out)
	}
}

// TestCostSeesTheResult: the cost model gets the transformed rows in the given bands, with the whole matrix's shape,
// role and workload.
func TestCostSeesTheResult(t *testing.T) {
	const rows, cols = 2000, 48
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = 1 + float32(i*i%127)/128
	}
	x := testmodel.Matrix(weights.BF16, cols, v)
	l := testplan.Alone(t, x, 0)
	result := testplan.Result(t, l, pass.Round.TensorStep("w", pass.Bits{Zeroed: 4}))
	seen := 0
	l.Role, l.Workload = cost.Streaming, cost.Workload{Decode: 1}
	l.Cost = testmodel.CostFunc(func(_ context.Context, w cost.Weights, role cost.Role, l cost.Workload) (e cost.Estimate, err error) {
		if w.DType != weights.BF16 || w.OutAxis != 0 || w.Rows != rows || w.Cols != cols || len(w.Bands) < 2 {
			t.Errorf("%v, outputs %d, %d×%d, %d bands", w.DType, w.OutAxis, w.Rows, w.Cols, len(w.Bands))
		}
		if role != cost.Streaming || l != (cost.Workload{Decode: 1}) {
			t.Errorf("%v, %v", role, l)
		}
		before, after := true, true
		for _, b := range w.Bands {
			at := b.First * cols * 2
			before = before && string(b.Data) == string(x.Data[at:at+len(b.Data)])
			after = after && string(b.Data) == string(result.Data[at:at+len(b.Data)])
		}
		if before == after {
			t.Errorf("bands are before: %v, after: %v", before, after)
		}
		if after {
			seen++
			return cost.Estimate{Relative: 0.5}, nil
		}
		return cost.Estimate{Relative: 1}, nil
	})
	_, out, err := search.Choose(t.Context(), l, testplan.Passes(t, "round=4"))
	testmodel.OK(t, err)
	if seen == 0 || out.Before.Relative != 1 || out.After.Relative != 0.5 {
		t.Errorf("the result was seen %d times; %+v, %+v", seen, out.Before, out.After)
	}
}
