package verify_test

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/order"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
)

const (
	codesOf  = "model.layers.0.mlp.up_proj.weight"
	scalesOf = "model.layers.0.mlp.up_proj.weight_scale"
)

// channels is a model of FP8 codes with a scale for each output.
func channels(t *testing.T) *weights.Model {
	t.Helper()
	i := slices.IndexFunc(testmodel.Quantisations, func(q testmodel.Quantisation) bool { return q.Name == "compressed fp8 channel" })
	return open(t, testmodel.Quantised(t, testmodel.Quantisations[i], testmodel.With{}))
}

// TestMovedCodesAreSeen: an order of codes with their scales is accepted as exact. After it, neither codes nor scales may change.
func TestMovedCodesAreSeen(t *testing.T) {
	m := channels(t)
	labels := order.Identity(testmodel.LayoutOf(t, m).Index("layers.0.ffn").Len)
	slices.Reverse(labels)
	out := testplan.Applied(t, m, nil, testplan.Of(t, m, &plan.Step{Pass: "reorder", Index: "layers.0.ffn", Data: labels}))
	r := report(t, m.Dir, out)
	wantOK(t, r)
	if x := tensorOf(t, r, codesOf); x.Class != verify.Exact || x.Relation == nil || x.Relation.RowsMoved == 0 {
		t.Errorf("%+v", x)
	}
	for _, name := range []string{codesOf, scalesOf} {
		change := func(data []byte) { data[0] ^= 1 }
		edit(t, out, name, change)
		vouch(t, out)
		wantProblem(t, report(t, m.Dir, out), codesOf+": its codes or scales are not the source's in the claimed order")
		edit(t, out, name, change)
	}
	vouch(t, out)
	wantOK(t, report(t, m.Dir, out))
}

// TestPlacedScalesAreSeen: a scale of FP8 codes that does not give the codes their claimed size is seen.
func TestPlacedScalesAreSeen(t *testing.T) {
	m := channels(t)
	out := convert(t, m.Dir, "scales=4", 0)
	wantOK(t, report(t, m.Dir, out))
	edit(t, out, scalesOf, func(data []byte) {
		f := testmodel.FormatOf(testmodel.TensorOf(t, m, scalesOf).DType)
		f.SetElem(data, 2, f.FromValue(8*f.Value(f.Elem(data, 2))))
	})
	vouch(t, out)
	wantProblem(t, report(t, m.Dir, out), "under scale 2, which is")
}
