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
	"github.com/lowtoggle/lowtoggle/weights/quant"
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
		wantProblem(t, report(t, m.Dir, out), codesOf+": the claimed order, signs and exponents do not turn the source's codes")
		edit(t, out, name, change)
	}
	vouch(t, out)
	wantOK(t, report(t, m.Dir, out))
}

// TestMovedZeroPoints: after an order, tensors of zero points and of group indices are exact changes.
func TestMovedZeroPoints(t *testing.T) {
	found := map[quant.Role]int{}
	for _, q := range testmodel.Quantisations {
		if q.Name != "pack-quantized asymmetric" && q.Name != "gptq" {
			continue
		}
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		labels := order.Identity(testmodel.LayoutOf(t, m).Index("layers.0.ffn").Len)
		slices.Reverse(labels)
		r := report(t, m.Dir, testplan.Applied(t, m, nil, testplan.Of(t, m, &plan.Step{Pass: "reorder", Index: "layers.0.ffn", Data: labels})))
		wantOK(t, r)
		for _, x := range r.Tensors {
			if x.Class == verify.Exact {
				found[x.Part]++
			}
		}
	}
	if found[quant.ZeroPoints] == 0 || found[quant.GroupIndex] == 0 {
		t.Errorf("moved tensors by role: %v", found)
	}
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
	wantProblem(t, report(t, m.Dir, out), "scale 2 is")
}

// TestOtherCodesOfEqualValues: codes that become others of the same value are an exact change, without an SNR.
func TestOtherCodesOfEqualValues(t *testing.T) {
	tried := 0
	for _, q := range testmodel.Quantisations {
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		p := testplan.Make(t, m, "zeros", 0)
		if len(p.Steps) == 0 || tried > 2 {
			continue
		}
		tried++
		r := report(t, m.Dir, testplan.Applied(t, m, nil, p))
		wantOK(t, r)
		exact := 0
		for _, x := range r.Tensors {
			if x.Class == verify.Exact {
				exact++
			}
			if x.SNR != nil || x.Class == verify.Lossy || x.Class == verify.Rescaled {
				t.Errorf("%s: %s is %s", q.Name, x.Name, x.Class)
			}
		}
		if exact == 0 {
			t.Errorf("%s: no codes changed", q.Name)
		}
	}
	if tried == 0 {
		t.Error("no layout has a negative zero")
	}
}
