package pass_test

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
)

// TestValidate: each hook that does not fit a pass's class, and each name that a plan cannot hold, is a problem of its own.
func TestValidate(t *testing.T) {
	const name, doc, hessians, chooses = "separators", "needs Doc", "NeedsHessians is set without UsesHessians", "only a lossy pass may set Joint"
	const exact, compensated, lossy = "an exact pass needs Plan", "a compensated pass needs Plan", "a lossy pass needs Candidates"
	for _, row := range transform.Passes {
		if err := row.Pass.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		of     *pass.Pass
		change func(p *pass.Pass)
		want   string // empty: no problem
	}{
		{pass.Reorder, func(p *pass.Pass) { p.Name, p.Usage = "", "" }, name},
		{pass.Reorder, func(p *pass.Pass) { p.Name, p.Usage = "a=b", "a=b" }, name},
		{pass.Reorder, func(p *pass.Pass) { p.Name, p.Usage = "pass", "pass" }, name},
		{pass.Reorder, func(p *pass.Pass) { p.Name, p.Usage = "index", "index" }, name},
		{pass.Reorder, func(p *pass.Pass) { p.Name, p.Usage = "tensor", "tensor" }, name},
		{pass.Reorder, func(p *pass.Pass) { p.Name, p.Usage = "tensors", "tensors" }, ""},
		{pass.Reorder, func(p *pass.Pass) { p.Doc = "" }, doc},
		{pass.Reorder, func(p *pass.Pass) { p.Usage = "other" }, doc},
		{pass.Reorder, func(p *pass.Pass) { p.NeedsHessians = true }, hessians},
		{pass.Reorder, func(p *pass.Pass) { p.NeedsHessians, p.UsesHessians = true, true }, ""},
		{pass.Reorder, func(p *pass.Pass) { p.Joint = true }, chooses},
		{pass.Shift, func(p *pass.Pass) { p.Chooser = true }, chooses},
		{pass.Shift, func(p *pass.Pass) { p.Companion = true }, chooses},
		{pass.Round, func(p *pass.Pass) { p.Joint, p.Companion = true, true }, ""},
		{pass.Reorder, func(p *pass.Pass) { p.Plan = nil }, exact},
		{pass.Reorder, func(p *pass.Pass) { p.Symmetry = nil }, exact},
		{pass.Reorder, func(p *pass.Pass) { p.Compile = pass.Round.Compile }, exact},
		{pass.Reorder, func(p *pass.Pass) { p.Candidates = pass.Round.Candidates }, exact},
		{pass.Reorder, func(p *pass.Pass) { p.NeedsFamily = false }, exact},
		{pass.Shift, func(p *pass.Pass) { p.Plan = nil }, compensated},
		{pass.Shift, func(p *pass.Pass) { p.Compile = nil }, compensated},
		{pass.Shift, func(p *pass.Pass) { p.Symmetry = pass.Reorder.Symmetry }, compensated},
		{pass.Round, func(p *pass.Pass) { p.Candidates = nil }, lossy},
		{pass.Round, func(p *pass.Pass) { p.Compile = nil }, lossy},
		{pass.Round, func(p *pass.Pass) { p.Symmetry = pass.Reorder.Symmetry }, lossy},
		{pass.Round, func(p *pass.Pass) { p.Plan = pass.Reorder.Plan }, lossy},
		{pass.Reorder, func(p *pass.Pass) { p.Class = "free" }, `unknown class "free"`},
	} {
		p := *c.of
		c.change(&p)
		err := p.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s as %s, %s: %v, want %q alone", c.of.Name, p.Name, p.Class, err, c.want)
		}
	}
}
