package transform_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// planInParts plans in parts, through files, from the last part to the first.
func planInParts(t *testing.T, m *weights.Model, o transform.Options, of int) (parts []*plan.Partial) {
	t.Helper()
	for n := of; n > 0; n-- {
		made, err := transform.PlanPart(t.Context(), m, o, apply.Part{Number: n, Of: of})
		ok(t, err)
		js, err := made.Encode()
		ok(t, err)
		file := filepath.Join(t.TempDir(), "part")
		ok(t, os.WriteFile(file, js, 0o666))
		read, err := plan.ReadPartial(file)
		ok(t, err)
		parts = append(parts, read)
	}
	return parts
}

// TestPlanInParts: a plan merged from parts has the bytes of a plan of one process.
func TestPlanInParts(t *testing.T) {
	for _, c := range []struct {
		model, passes string
		minSNR        float64
	}{
		{"llama-tiny", "grid=4,round=2", 0}, {"mixtral-tiny", "scale,reorder,signs,grid=4", 0}, {"gpt2-tiny", "shift,sparsify=0.1", 0},
		{"qwen3_moe-tiny", "grid,round", 25}, {"llama-tiny", "trellis=0.01", 0},
	} {
		m := open(t, folder(t, config(t, c.model, ""), synth.Options{Seed: 1}))
		o := options(t, c.passes, c.minSNR)
		whole, err := transform.Plan(t.Context(), m, o)
		ok(t, err)
		want, err := whole.Plain()
		ok(t, err)
		for _, of := range []int{1, 3, 7, 100} {
			merged, err := transform.MergePlan(t.Context(), m, o, planInParts(t, m, o, of))
			ok(t, err)
			have, err := merged.Plain()
			ok(t, err)
			if !bytes.Equal(want, have) {
				t.Errorf("%s, %s: %d parts make another plan:\n%s\nwant\n%s", c.model, c.passes, of, have, want)
			}
		}
	}
}

// TestMergeRefuses: parts that do not fit each other, or the request, are errors that name them.
func TestMergeRefuses(t *testing.T) {
	m := open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{Seed: 1}))
	o := options(t, "round=2", 0)
	good := planInParts(t, m, o, 3)
	changed := func(change func(p *plan.Partial)) []*plan.Partial {
		parts := append([]*plan.Partial{}, good...)
		p := *parts[1] // number 2
		change(&p)
		parts[1] = &p
		return parts
	}
	other := planInParts(t, open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{Seed: 2})), o, 3)
	for name, c := range map[string]struct {
		parts []*plan.Partial
		want  string
	}{
		"none":          {nil, "no parts"},
		"missing":       {good[1:], "part 3/3 is missing"},
		"twice":         {append(append([]*plan.Partial{}, good...), good[0]), "given twice"},
		"of":            {changed(func(p *plan.Partial) { p.Of = 4 }), "have different numbers of parts"},
		"version":       {changed(func(p *plan.Partial) { p.Tool = "0.0" }), "were made by different versions of lowtoggle"},
		"model":         {changed(func(p *plan.Partial) { p.Model.SHA256 = "00" }), "were made for different models"},
		"options":       {changed(func(p *plan.Partial) { p.Options = "00" }), "with different options"},
		"whole":         {changed(func(p *plan.Partial) { p.Notes = []string{"x"} }), "with different steps for the whole model"},
		"layer missing": {changed(func(p *plan.Partial) { p.Layers = p.Layers[1:] }), "no part has layer"},
		"layer twice":   {changed(func(p *plan.Partial) { p.Layers = good[0].Layers }), "and in another part"},
		"other model":   {other, "for another model"},
	} {
		if _, err := transform.MergePlan(t.Context(), m, o, c.parts); !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := transform.MergePlan(t.Context(), m, options(t, "round=3", 0), good); !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), "other options") {
		t.Errorf("other options: error %v", err)
	}
	o.Budget.MaxLoss = new(float64)
	if _, err := transform.PlanPart(t.Context(), m, o, apply.Part{Number: 1, Of: 2}); !errors.Is(err, transform.ErrBudgetInParts) {
		t.Errorf("a budget of loss: error %v", err)
	}
}

// TestMergeWithoutAPart: a nil part is an error, not a panic.
func TestMergeWithoutAPart(t *testing.T) {
	m := open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{}))
	for _, parts := range [][]*plan.Partial{{nil}, {{Number: 1, Of: 2}, nil}} {
		_, err := transform.MergePlan(t.Context(), m, transform.Options{}, parts)
		if !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), "] is nil: give all") {
			t.Errorf("error %v", err)
		}
	}
}
