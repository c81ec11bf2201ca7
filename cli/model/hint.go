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

// suggestion returns a hint with a command that changes codes and scales of a quantised model, its predicted saving and its output
// SNR. The hint is empty if the model has no such codes, if no saving is predicted, or if planning fails: a failed hint must not
// fail the report. o's passes and budget are ignored.
func suggestion(c *cli.Context, m *weights.Model, path string, o transform.Options) string {
	if !transform.ChangesCodes(m, suggested) {
		return ""
	}
	var err error
	if o.Passes, err = transform.ParsePasses(suggested); err != nil {
		return ""
	}
	o.Budget, o.Tokens, o.Progress = pass.Budget{}, nil, nil
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
	against := "this checkpoint"
	if o.Reference != nil {
		against = "the reference"
	}
	return fmt.Sprintf("other codes and scales can save energy: %s predicted for %s, with an output SNR of at least %s relative to %s: %s", term.Change(total.Relative),
		o.Workload, term.Decibels(low), against, term.CommandLine(withReference(c, checkWith(c, p.Request, "convert", path, "OUT", "--passes", suggested)...)...))
}

// unusedCodes returns the suggestion if a recipe changed no codes of a quantised model; otherwise an empty text.
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
