package model

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
)

// lowSNR returns a warning about a plan's layers whose output SNR is below the minimum of all recipes. The warning is
// empty if there are no such layers, or if the user gave a budget.
func lowSNR(p *plan.Plan) string {
	var low lowest
	for i := range p.Predictions {
		low.add(&p.Predictions[i], p.Predictions[i].LowestSNR())
	}
	return low.text(p.Request)
}

// lowSNRFound returns the warning for the output SNRs that verify computed. It uses the plan's predicted SNRs in two
// cases: later columns absorbed rounding errors, or the codes approximate a reference model's values.
func lowSNRFound(r *verify.Report) string {
	if r.Plan == nil {
		return ""
	}
	if transform.Passes.FeedsBack(r.Plan) || r.Plan.Request.Format != "" || r.Plan.Request.Reference != "" {
		return lowSNR(r.Plan)
	}
	var low lowest
	for i := range r.Tensors {
		if t := &r.Tensors[i]; t.Linear {
			low.add(&plan.Prediction{}, t.SNR)
		}
	}
	return low.text(r.Plan.Request)
}

// lowest counts layers with a low output SNR. snr is the lowest SNR in dB; nil if there is none.
type lowest struct {
	layers int
	snr    *float64
}

func (l *lowest) add(o *plan.Prediction, snr *float64) {
	if snr != nil && *snr < transform.LowSNR(o.SourceSNR) {
		l.layers++
		l.snr = lower(l.snr, snr)
	}
}

func (l *lowest) text(r plan.Request) string {
	if l.layers == 0 || r.MinSNR != nil || r.MaxLoss != nil {
		return ""
	}
	return fmt.Sprintf("the output SNR of %s is below %g dB, the minimum that a built-in recipe allows; the lowest is %s. Measure the accuracy with lowtoggle eval, or set a bound with --min-snr",
		term.Plural(l.layers, "layer", "layers"), transform.LowSNR(nil), term.Decibels(l.snr))
}
