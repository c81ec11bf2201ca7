package sweep

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// mostDrift is the largest ratio, less 1, between visits of the reference.
const mostDrift = 0.02

// validate collects the reasons to doubt the figures.
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
		r.Invalid = append(r.Invalid, fmt.Sprintf("%d of %d null comparisons do not contain 1, and chance explains at most %d: the measurements show differences where there are none", missed, len(r.Visits), most))
	}
	if r.Drift > mostDrift {
		r.Invalid = append(r.Invalid, fmt.Sprintf("energy at the reference drifted by %.1f %% between its visits: sweep again, on a warm card that nobody else uses", 100*r.Drift))
	}
	if n := len(r.Visits); n < len(p.Order) {
		text := fmt.Sprintf("%d of %d visits were made", n, len(p.Order))
		if last := r.Visits[n-1].Run.Stopped; last == power.StoppedCancelled || last == power.StoppedFailed {
			text += ", the last one in part"
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
		r.warn("at %v it drew %.0f W: the limit was not kept", v.Setting, run.Watts)
	}
	capped := run.Capped != nil && *run.Capped
	if locked, clock := v.Setting.Clock, run.SMClock; locked > 0 && clock != nil && !capped && math.Abs(*clock/locked-1) > off {
		r.warn("at %v it ran at %.0f MHz: the clock was not kept", v.Setting, *clock)
	}
}

func (r *Result) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}
