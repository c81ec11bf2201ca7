package model

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// page fills the report's page.
func (r inspectJSON) page(c *cli.Context, all []inspect.ValuesOfKind) *page.Page {
	p := page.New(c, "Weights of "+modelName(r.Model), r.Model)
	p.Figure("weights", term.Count(r.Elements()), term.Plural(r.Total.Tensors, "tensor", "tensors")+", "+term.Size(r.Total.Bytes), report.Computed)
	if e := r.Total.Energy; e != nil {
		p.Figure("energy relative to random weights", fmt.Sprintf("%.3f", e.Relative), fmt.Sprintf("95 %%: %.3f … %.3f", e.Interval[0], e.Interval[1]), report.Predicted)
		p.Origin("predicted energies", report.Predicted, "calibration "+e.Calibration)
	}
	if ceiling := r.Ceiling; ceiling != nil {
		p.Figure("predicted ceiling", term.Change(ceiling.Relative), page.Between(ceiling.Interval[:])+" if all weights were zero", report.Predicted)
	}
	r.print(p.Section("What the model holds"), false)
	addValues(p, all)
	if len(r.Tensors) > 0 {
		r.table(true).Print(p.Section("Every tensor").Folded(term.Plural(len(r.Each()), "row", "rows")))
	}
	p.Origin("toggles, ones and zeros of tensors", report.Computed, "all stored weights")
	return p
}

// modelName is the name of a model's folder or file. Only a path such as ".." needs the working directory.
func modelName(path string) string {
	name := filepath.Base(path)
	if name != "." && name != ".." {
		return name
	}
	if full, err := filepath.Abs(path); err == nil {
		return filepath.Base(full)
	}
	return path
}
