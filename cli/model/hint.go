package model

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// suggested is the pass that saves most energy if it alone changes codes.
const suggested = "scales"

// suggestion returns a hint: a command that changes codes and scales of a quantised model, its predicted saving and its
// output SNR. The command uses the pass suggested. With byDefault, it uses the default recipe if that recipe saves
// more. The hint is empty if no codes can be changed or no saving is predicted. It is also empty if planning fails,
// because a failed hint must not fail the report. The passes and the budget in o are ignored.
func suggestion(c *cli.Context, m *weights.Model, path string, o transform.Options, byDefault bool) string {
	if !transform.ChangesCodes(m, suggested) {
		return ""
	}
	words, best := []string{"--passes", suggested}, planned(c, m, o, transform.Recipe{Passes: suggested})
	if byDefault {
		recipe, err := transform.FindRecipe(transform.DefaultRecipe)
		if err != nil {
			return ""
		}
		p := planned(c, m, o, recipe.For(m, o.Family, o.Workload))
		if p != nil && changesSome(m, p) && (best == nil || transform.Predicted(m, p).Relative < transform.Predicted(m, best).Relative) {
			words, best = nil, p
		}
	}
	if best == nil {
		return ""
	}
	var low *float64
	for i := range best.Predictions {
		low = lower(low, best.Predictions[i].LowestSNR())
	}
	against := "this checkpoint"
	if o.Reference != nil {
		against = "the reference"
	}
	return fmt.Sprintf("other codes and scales can save energy: %s in the linear layers, predicted for %s, with an output SNR of at least %s relative to %s:\n%s%s",
		term.Change(transform.Predicted(m, best).Relative), o.Workload, term.Decibels(low), against, term.CommandIndent,
		term.CommandLine(withSelection(c, withReference(c, checkWith(c, best.Request, append([]string{"convert", path, "OUT"}, words...)...)...)...)...))
}

// planned returns the plan of a recipe without tokens. The plan is nil if planning fails or predicts no saving.
func planned(c *cli.Context, m *weights.Model, o transform.Options, r transform.Recipe) *plan.Plan {
	var err error
	if o.Passes, err = transform.ParsePasses(r.Passes); err != nil {
		return nil
	}
	o.Budget, o.Tokens, o.Progress = pass.Budget{MinSNR: r.MinSNR, OrSource: true}, nil, nil
	p, err := transform.Plan(c.Context, m, o)
	if err != nil {
		return nil
	}
	total := transform.Predicted(m, p)
	if nothing, _ := transform.SavesNothing(total); total == nil || nothing {
		return nil
	}
	return p
}

// changesSome reports whether a plan changes codes or scales of quantised weights.
func changesSome(m *weights.Model, p *plan.Plan) bool {
	d, err := quant.Describe(m)
	return err == nil && slices.ContainsFunc(p.Steps, func(s *plan.Step) bool {
		_, coded := d.Weight(s.Tensor)
		return coded
	})
}

// unusedCodes returns the suggestion if a recipe with a budget changed no codes of a quantised model; otherwise an
// empty string.
func unusedCodes(c *cli.Context, m *weights.Model, path string, o transform.Options, p *plan.Plan) string {
	chosen := c.IsSet("passes") || c.IsSet("format") || c.IsSet("plan") || c.Bool("resume")
	exact := p.Request.MinSNR == nil && p.Request.MaxLoss == nil
	if chosen || exact || len(p.Quantised) == 0 || changesSome(m, p) {
		return ""
	}
	return suggestion(c, m, path, o, false)
}
