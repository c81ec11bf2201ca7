package verify

import (
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// leftAlone checks that the weights excluded by the plan's request did not change.
func (r *Report) leftAlone(c *claims, q *quant.Description) {
	if r.Plan == nil {
		return
	}
	selector, err := r.Plan.Request.Selector()
	if err != nil {
		r.problem("the manifest's plan is invalid: %v", err)
		return
	}
	for i := range r.Tensors {
		t := &r.Tensors[i]
		same := t.Class == Identical || t.Class == Untouched
		switch {
		case t.Problem != "" || same:
		case selector.Leaves(storedNames(q, t.Name)...):
			t.Problem = "changed, and the plan's ignore or only excludes this tensor"
		case r.Plan.Request.KeepRouters && t.Class == Lossy && c.isRouter(t.Name):
			t.Problem = "is a router whose values changed, and the plan does not change routers"
		}
	}
}

// storedNames lists a tensor's name. If the tensor belongs to a quantised weight, it also lists the weight and its
// other tensors.
func storedNames(q *quant.Description, tensor string) []string {
	w, ok := q.WeightOf(tensor)
	if !ok {
		return []string{tensor}
	}
	names := []string{tensor, w.Name}
	for _, t := range w.Tensors {
		names = append(names, t.Name)
	}
	return names
}

// isRouter reports whether a tensor is the weight of a router in a block.
func (c *claims) isRouter(tensor string) bool {
	if !arch.IsRouter(tensor) {
		return false
	}
	if c.layout == nil {
		return true
	}
	claim := c.layout.Claims[tensor]
	return claim != nil && claim.Role == arch.Linear && claim.Layer >= 0
}
