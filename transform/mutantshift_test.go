package transform_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Norms, biases and softmax in a family's file matter if a LayerNorm is folded into the layers that read it, or if a
// constant is added. The slips in this file are tested by shifts.

// feedSlips returns slips about the input of layer i, and about where its outputs lead.
func feedSlips(f file, i int, users []*witness) (all []slip) {
	tensor := f.list("tensors")[i]
	add := func(field string, value any) {
		changed := maps.Clone(tensor)
		changed[field] = value
		if value == nil {
			delete(changed, field)
		}
		what := fmt.Sprintf("%s, when %v: %s %v for %v", tensor["name"], tensor["when"], field, value, tensor[field])
		all = append(all, slip{what, f.with("tensors", i, changed), users, true})
	}
	if tensor["norm"] != nil {
		add("norm", nil)
	}
	for _, norm := range f.list("norms") {
		if norm["name"] != tensor["norm"] && norm["kind"] == "layernorm" {
			add("norm", norm["name"])
		}
	}
	if tensor["softmax"] != true {
		add("softmax", true)
	}
	return all
}

// normSlips returns slips about the norms.
func normSlips(f file, witnesses []*witness) (all []slip) {
	for i, norm := range f.list("norms") {
		changed, what := maps.Clone(norm), ""
		if norm["kind"] == "layernorm" && norm["bias"] != nil {
			delete(changed, "bias")
			what = fmt.Sprintf("norm %s: without its bias", norm["name"])
		} else if norm["kind"] != "layernorm" {
			changed["kind"] = "layernorm"
			what = fmt.Sprintf("norm %s: a layernorm, for %s", norm["name"], norm["kind"])
		}
		if what != "" {
			all = append(all, slip{what, f.with("norms", i, changed), witnesses, true})
		}
	}
	return all
}

// shifting is a model that can be shifted without rounding.
type shifting struct {
	subject
	model   *weights.Model
	outputs [][]float64
	layout  *arch.Layout
	planned map[string]bool // steps under the correct family, as JSON
}

func newShifting(t *testing.T, s subject) *shifting {
	m := s.coarse(t)
	sh := &shifting{s, m, s.outputs(t, m), layoutOf(t, m), map[string]bool{}}
	p, err := transform.Plan(t.Context(), m, options(t, "shift", 0))
	ok(t, err)
	for _, step := range p.Steps {
		sh.planned[stepText(t, step)] = true
	}
	return sh
}

func stepText(t *testing.T, step *plan.Step) string {
	js, err := json.Marshal(step)
	ok(t, err)
	return string(js)
}

// sees reports whether a plan under another family changes the outputs or is an error, and whether it has steps that
// the correct family does not give.
func (s *shifting) sees(t *testing.T, family *arch.Family) (seen, more bool) {
	o := options(t, "shift", 0)
	o.Family = family
	p, err := transform.Plan(t.Context(), s.model, o)
	if err != nil {
		return true, true
	}
	if !slices.ContainsFunc(p.Steps, func(step *plan.Step) bool { return !s.planned[stepText(t, step)] }) {
		return false, false
	}
	l, err := family.Resolve(s.config, s.model.Infos())
	ok(t, err)
	c, steps := compilerOf(t, s.model, l, p.Steps), plan.ByTensor(p.Steps)
	there := rewritten(t, s.model, func(x weights.Tensor) []byte { return run(t, c, s.model, x.Name, steps[x.Name]) })
	got, want, layout := s.subject.outputs(t, there), s.outputs, s.layout
	if slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return layout.Claims[s.Tensor].Softmax }) {
		got, want = centred(got), centred(want)
	}
	return !(apart(want, got) <= sameOutputs) || !s.sameCopies(t, there), true
}
