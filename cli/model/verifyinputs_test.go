package model

import (
	"maps"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// TestComparable: lossy layers are comparable, except layers whose weights were moved or shifted.
func TestComparable(t *testing.T) {
	shift := 0.5
	r := &verifyJSON{Report: &verify.Report{
		Tensors: []verify.Tensor{
			{Name: "lossy", Linear: true, Class: verify.Lossy},
			{Name: "moved", Linear: true, Class: verify.Lossy, Relation: &verify.Relation{RowsMoved: 2}},
			{Name: "shifted", Linear: true, Class: verify.Lossy, Shift: &shift},
			{Name: "same", Linear: true, Class: verify.Identical},
			{Name: "exact", Linear: true, Class: verify.Exact, Relation: &verify.Relation{RowsMoved: 2}},
			{Name: "embedding", Class: verify.Lossy},
		}}}
	if names, others := r.comparable(&arch.Layout{}); !maps.Equal(names, map[string]bool{"lossy": true}) || others != 2 {
		t.Errorf("comparable layers %v, and %d others", names, others)
	}
}

// TestComparableWeights: any changed tensor of a quantised layer makes the layer comparable, under the weight's name.
func TestComparableWeights(t *testing.T) {
	l := testmodel.LayoutOf(t, testmodel.Open(t, quantised(t, false)))
	const module = "model.layers.0.mlp.up_proj."
	r := &verifyJSON{Report: &verify.Report{Tensors: []verify.Tensor{
		{Name: module + "qweight", Class: verify.Identical}, {Name: module + "scales", Class: verify.Lossy}, {Name: "model.layers.0.mlp.down_proj.scales", Class: verify.Identical},
	}}}
	if names, others := r.comparable(l); !maps.Equal(names, map[string]bool{module + "weight": true}) || others != 0 {
		t.Errorf("comparable layers %v, and %d others", names, others)
	}
	decibels := 20.0
	on := &onInputsJSON{snr: map[string]*float64{module + "weight": &decibels}, coded: l.Quantised}
	if got := on.of(module + "qweight"); got != &decibels || on.of("other") != nil || on.of(module+"scales") != nil {
		t.Errorf("%v", got)
	}
}
