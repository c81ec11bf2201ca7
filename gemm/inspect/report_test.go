package inspect

import (
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// reportOf returns a report of equally large layers, each of another type, with these predictions and ceilings, and of
// other weights beside them.
func reportOf(t *testing.T, others int, layers ...[2]float64) *Report {
	t.Helper()
	r := &Report{}
	r.add(Tensor{Name: "embed", Kind: "embed", elements: others})
	types := []weights.DType{weights.F16, weights.BF16}
	ceilings := map[weights.DType]float64{}
	for i, l := range layers {
		e := cost.Estimate{Relative: l[0], Interval: [2]float64{l[0] - 0.035, l[0] + 0.035}, Calibration: "test"}
		r.add(Tensor{Name: "proj", Kind: "proj", Linear: true, Predicted: &e, layer: layerShape{dtype: types[i]}, elements: 1000})
		ceilings[types[i]] = l[1]
	}
	if err := r.conclude(func(l layerShape) (cost.Estimate, error) {
		zeros := ceilings[l.dtype]
		return cost.Estimate{Relative: zeros, Interval: [2]float64{zeros - 0.1, zeros + 0.2}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	return r
}

// The ceiling is relative to today's energy, also over mixed types. Below 1 % the report says that a conversion is
// not worth it.
func TestConclude(t *testing.T) {
	for _, test := range []struct {
		r          *Report
		ceiling    float64 // 0: not known
		notWorthIt string
	}{
		{reportOf(t, 0, [2]float64{1, 0.6}), 0.6, ""},
		{reportOf(t, 1000, [2]float64{0.9, 0.6}, [2]float64{0.7, 0.4}), 1.0 / 1.6, ""},
		{reportOf(t, 0, [2]float64{0.6, 0.596}), 0.596 / 0.6, "would save less than 1 %"},
		{reportOf(t, 0, [2]float64{0.6, 0.592}), 0.592 / 0.6, ""},
		{reportOf(t, 98_000, [2]float64{1, 0.6}), 0.6, ""},
		{reportOf(t, 100_000, [2]float64{1, 0.6}), 0.6, "only 1000 of the model's 101000 values are weights"},
		{reportOf(t, 5), 0, "no linear layer whose weights"},
		{&Report{}, 0, ""},
	} {
		if (test.notWorthIt == "") != (test.r.NotWorthIt == "") || !strings.Contains(test.r.NotWorthIt, test.notWorthIt) {
			t.Errorf("not worth it: %q, want %q", test.r.NotWorthIt, test.notWorthIt)
		}
		ceiling := 0.0
		if test.r.Ceiling != nil {
			ceiling = test.r.Ceiling.Relative
		}
		if math.Abs(ceiling-test.ceiling) > 1e-12 {
			t.Errorf("the ceiling is %v, want %v", ceiling, test.ceiling)
		}
		if c := test.r.Ceiling; c != nil { // in the same proportion to the model's energy
			for i, off := range []float64{-0.1, 0.2} {
				if want := c.Relative + off/test.r.Total.Energy.Relative; math.Abs(c.Interval[i]-want) > 1e-12 {
					t.Errorf("the ceiling %v is within %v, want %v at end %d", c.Relative, c.Interval, want, i)
				}
			}
		}
	}
}

// TestKinds: kinds are in the order of their first tensors; a figure that no tensor has is unknown.
func TestKinds(t *testing.T) {
	r := reportOf(t, 7, [2]float64{0.9, 0.6}, [2]float64{0.7, 0.4})
	kinds := r.Kinds()
	if len(kinds) != 2 || kinds[0].Name != "embed" || kinds[0].Elements != 7 || kinds[1].Tensors != 2 || kinds[1].Elements != 2000 {
		t.Fatalf("%+v", kinds)
	}
	if !math.IsNaN(kinds[0].Relative) || !math.IsNaN(kinds[0].Ones) || math.Abs(kinds[1].Relative-0.8) > 1e-12 {
		t.Errorf("%+v", kinds)
	}
}
