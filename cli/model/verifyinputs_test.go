package model

import (
	"maps"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform/verify"
)

// TestComparable: lossy layers, but not those whose weights are elsewhere or have something added.
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
	if names, others := r.comparable(); !maps.Equal(names, map[string]bool{"lossy": true}) || others != 2 {
		t.Errorf("%v, and %d others", names, others)
	}
}
