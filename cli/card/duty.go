package card

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// parseDuties reads a list such as "1,0.4" or "1,auto".
func parseDuties(text string) (duties []float64, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		duty := 1.0
		switch part = strings.TrimSpace(part); part {
		case "1", "100%":
		case "auto":
			duty = power.AutoDuty
		default:
			if duty, err = parseShare(part, 0.4); err != nil {
				return nil, fmt.Errorf("%w, or auto; 1 means no gaps", err)
			}
			if duty < power.LeastDuty {
				return nil, fmt.Errorf("%s: give a share of at least %v: with longer gaps a reading takes minutes", part, power.LeastDuty)
			}
		}
		if slices.Contains(duties, duty) {
			return nil, fmt.Errorf("%s is given twice: give it once", part)
		}
		duties = append(duties, duty)
	}
	return duties, nil
}

// checkDuties returns an error for several duties on several cards, because totals over cards are for one duty.
func (q *request) checkDuties(cards machines) error {
	if len(q.duties) > 1 && len(cards) > 1 {
		return exit.Usagef("--duty with several shares measures on one card: give one share, or one card with --device")
	}
	return nil
}

// dutyTitle returns the heading of one of several tables, each of its own duty; empty without a duty.
func dutyTitle(p *power.Pacing) string {
	if p == nil {
		return ""
	}
	if p.Duty == 1 {
		return "duty 1: products without gaps\n"
	}
	return fmt.Sprintf("duty %.3g: products in bursts with gaps\n", p.Duty)
}

// dutyRemark prints the duty, and the energy in the gaps, which the table's energy does not include.
func dutyRemark(w io.Writer, r *measure.Result) {
	p := r.Pacing
	if p == nil {
		return
	}
	asked := ""
	if p.Auto {
		asked = ", the largest with a power below the cap"
	}
	term.Remark(w, "limit", limits(r))
	if p.Duty == 1 {
		term.Remark(w, "duty", "1"+asked+": products without gaps")
		return
	}
	term.Remark(w, "duty", fmt.Sprintf("%.3g%s: bursts of %.2f ms, gaps of %.2f ms; energy and time are of the bursts alone", p.Duty, asked, 1e3*p.Burst, 1e3*p.Gap))
	if share := r.Baseline.IdleJoules; share > 0 {
		term.Remark(w, "idle", fmt.Sprintf("the card draws %.0f W in the gaps: %s for every pass of the baseline; the table's energy does not include this energy", p.IdleWatts, siJoules(share)))
	}
}

// limits names the limits that lowered the baseline's clock, and those of variants with other limits.
func limits(r *measure.Result) string {
	text := r.Baseline.Limit.Describe()
	for _, v := range r.Variants {
		if v.Windows > 0 && v.Limit != r.Baseline.Limit {
			text += fmt.Sprintf("; %s: %s", v.Name, v.Limit.Describe())
		}
	}
	return text
}
