package model

import (
	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/card"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/internal/report"
	"github.com/lowtoggle/lowtoggle/weights"
)

// writePage writes the report of verify. Unless the output is wrong, it samples the values of source and output.
func (r *verifyJSON) writePage(c *cli.Context, path string, src, out *weights.Model, args []string, o flag.Options) error {
	p := page.New(c, "Check of "+modelName(args[1]), args[0]+" → "+args[1])
	verdict := "ok"
	if !r.OK {
		verdict = "NOT OK"
	}
	p.Figure("verdict", verdict, term.Plural(len(r.Tensors), "tensor", "tensors")+" compared", report.Computed)
	p.Origin("verdict, classes and SNR of tensors", report.Computed, "all values of both models")
	addLoss(p, r.Loss, c.String("tokens"))
	var ratios []page.Ratio
	if e := r.Energy; e != nil {
		if t := e.Predicted; t.Known() != nil {
			addPredicted(p, t, r.workload.String())
			ratios = append(ratios, page.Ratio{Name: "predicted", Relative: t.Relative, Interval: t.Interval[:], How: report.Predicted})
		}
		if e.Measured != nil {
			ratios = append(ratios, card.AddModels(p, e.Measured)...)
		}
		if e.Whole != nil {
			ratios = append(ratios, card.AddWhole(p, e.Whole)...)
		}
	}
	s := p.Section("What was found")
	r.print(s, false)
	if len(ratios) > 0 {
		over, caption := "the source's", "Energy relative to the source, with 95 % intervals. The prediction is of the linear layers alone."
		if base := r.Energy.RelativeTo; base != "" {
			over = "the nearest codes'"
			caption = "Energy with 95 % intervals. The prediction is of the linear layers alone, relative to " + base + "."
			if len(ratios) > 1 {
				over = "the baseline's"
				caption += " Measured energies are relative to the source."
			}
		}
		p.Section("Energy").Picture(page.Ratios("energy after the conversion", over, ratios), caption)
	}
	if r.OK {
		all, err := inspect.Sample(c.Context, src, out, o.Family, o.Workers)
		if err != nil {
			return err
		}
		addValues(p, all)
	}
	if len(r.Tensors) > 0 {
		r.table(true).Print(p.Section("Every tensor").Folded(term.Plural(len(r.Tensors), "tensor", "tensors")))
	}
	return p.Write(c, path)
}
