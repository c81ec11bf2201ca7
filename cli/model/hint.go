package model

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// suggested is the pass that saves most where nothing else changes codes.
const suggested = "scales"

// suggestion names the command that changes codes and scales of a quantised model, with its predicted saving and output SNR. It is
// empty if the model has no such weights, if no saving is predicted, or if there is no plan: a hint that fails must not fail the
// command whose report it ends. o are options of a plan; its passes and budget do not count.
func suggestion(c *cli.Context, m *weights.Model, path string, o transform.Options) string {
	if !transform.ChangesCodes(m, suggested) {
		return ""
	}
	var err error
	if o.Passes, err = transform.ParsePasses(suggested); err != nil {
		return ""
	}
	o.Budget, o.Tokens, o.Reference, o.Progress = pass.Budget{}, nil, nil, nil
	p, err := transform.Plan(c.Context, m, o)
	if err != nil {
		return ""
	}
	total := transform.Predicted(m, p)
	if nothing, _ := transform.SavesNothing(total); total == nil || nothing {
		return ""
	}
	var low *float64
	for i := range p.Predictions {
		low = lower(low, p.Predictions[i].LowestSNR())
	}
	return fmt.Sprintf("codes and scales can save more: %s predicted for %s, with an output SNR of at least %s against this checkpoint: %s", term.Change(total.Relative),
		o.Workload, term.Decibels(low), term.CommandLine(checkWith(c, p.Request, "convert", path, "OUT", "--passes", suggested)...))
}

// unusedCodes is suggestion after a recipe that changed no codes of a quantised model.
func unusedCodes(c *cli.Context, m *weights.Model, path string, o transform.Options, p *plan.Plan) string {
	if c.IsSet("passes") || c.IsSet("format") || c.IsSet("plan") || c.Bool("resume") || len(p.Quantised) == 0 {
		return ""
	}
	d, err := quant.Describe(m)
	if err != nil {
		return ""
	}
	for _, s := range p.Steps {
		if _, coded := d.Weight(s.Tensor); coded {
			return ""
		}
	}
	return suggestion(c, m, path, o)
}
