package sweep

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// mostDrift is the largest valid ratio between two visits of the reference, minus 1.
const mostDrift = 0.02

// validate adds the reasons why the figures are not valid, and warnings.
func (r *Result) validate(p Plan) {
	missed := 0
	var low, high float64
	for _, v := range r.Visits {
		run := v.Run
		if run.OnlyNull() {
			missed++
		} else {
			for _, reason := range run.Invalid {
				r.Invalid = append(r.Invalid, fmt.Sprintf("at %v: %s", v.Setting, reason))
			}
		}
		for _, text := range run.Warnings {
			r.warn("at %v: %s", v.Setting, text)
		}
		r.warnNotKept(v)
		if j := run.Baseline.Joules; r.IsReference(v.Setting) {
			if low == 0 {
				low, high = j, j
			}
			low, high = min(low, j), max(high, j)
		}
	}
	if low > 0 {
		r.Drift = high/low - 1
	}
	if most := measure.MostMisses(len(r.Visits)); missed > most {
		r.Invalid = append(r.Invalid, fmt.Sprintf("%d of %d null comparisons show a difference between identical weights, but chance explains at most %d: sweep again with more time for each visit", missed, len(r.Visits), most))
	}
	if r.Drift > mostDrift {
		r.Invalid = append(r.Invalid, fmt.Sprintf("energy at the reference drifted by %.1f %% between its visits: sweep again on a warm card that no other process uses", 100*r.Drift))
	}
	if n := len(r.Visits); n < len(p.Order) {
		text := fmt.Sprintf("%d of %d visits were made", n, len(p.Order))
		if last := r.Visits[n-1].Run.Stopped; last == power.StoppedCancelled || last == power.StoppedFailed {
			text += ", and the last visit is incomplete"
		}
		r.Invalid = append(r.Invalid, text)
	}
	r.Valid = len(r.Invalid) == 0
}

// warnNotKept adds a warning if the card did not keep a setting.
func (r *Result) warnNotKept(v Visit) {
	const off = 0.03
	run := v.Run.Baseline
	if limit := v.Setting.Cap; limit > 0 && run.Watts > limit*(1+off) {
		r.warn("at %v the card drew %.0f W and did not keep the power limit", v.Setting, run.Watts)
	}
	capped := run.Capped != nil && *run.Capped
	if locked, clock := v.Setting.Clock, run.SMClock; locked > 0 && clock != nil && !capped && math.Abs(*clock/locked-1) > off {
		r.warn("at %v the card ran at %.0f MHz and did not keep the locked clock", v.Setting, *clock)
	}
}

func (r *Result) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}
