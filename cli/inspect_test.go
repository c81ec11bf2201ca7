package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// inspectionOf is a report of layers with the given predictions and ceilings, equally large and each
// of another type, and of other weights beside them.
func inspectionOf(t *testing.T, others int, layers ...[2]float64) *inspectJSON {
	t.Helper()
	r := &inspectJSON{workload: cost.DefaultWorkload}
	r.add(inspectTensor{Name: "embed", Kind: "embed", weights: others})
	types := []weights.DType{weights.F16, weights.BF16}
	ceilings := map[weights.DType]float64{}
	for i, l := range layers {
		e := estimate(l[0])
		r.add(inspectTensor{Name: "proj", Kind: "proj", Linear: true, Predicted: &e, dtype: types[i], weights: 1000})
		ceilings[types[i]] = l[1]
	}
	if err := r.conclude(func(l layerKind) (float64, error) { return ceilings[l.dtype], nil }); err != nil {
		t.Fatal(err)
	}
	return r
}

// What could be saved at the most is over today's energy, types mixed; below 1 % the report says so.
func TestInspectConcludes(t *testing.T) {
	for _, test := range []struct {
		r          *inspectJSON
		most       float64 // 0: not known
		notWorthIt string
	}{
		{inspectionOf(t, 0, [2]float64{1, 0.6}), 0.6, ""},
		{inspectionOf(t, 1000, [2]float64{0.9, 0.6}, [2]float64{0.7, 0.4}), 1.0 / 1.6, ""},
		{inspectionOf(t, 0, [2]float64{0.6, 0.596}), 0.596 / 0.6, "all zero would save less than 1 %"},
		{inspectionOf(t, 0, [2]float64{0.6, 0.592}), 0.592 / 0.6, ""},
		{inspectionOf(t, 98_000, [2]float64{1, 0.6}), 0.6, ""},
		{inspectionOf(t, 100_000, [2]float64{1, 0.6}), 0.6, "only 1 000 of 101 000 weights"},
		{inspectionOf(t, 5), 0, "no linear layers"},
		{&inspectJSON{}, 0, ""},
	} {
		if (test.notWorthIt == "") != (test.r.NotWorthIt == "") || !strings.Contains(test.r.NotWorthIt, test.notWorthIt) {
			t.Errorf("not worth it: %q, want %q", test.r.NotWorthIt, test.notWorthIt)
		}
		most := 0.0
		if test.r.Ceiling != nil {
			most = test.r.Ceiling.Relative
		}
		if math.Abs(most-test.most) > 1e-12 {
			t.Errorf("the most is %v, want %v", most, test.most)
		}
		var text strings.Builder
		test.r.print(&text, false)
		if strings.Contains(text.String(), "\nnot worth it: ") != (test.notWorthIt != "") {
			t.Errorf("the report reads\n%s", text.String())
		}
	}
}
