package power

import (
	"fmt"
	"slices"
	"strings"
)

// Result is the result of a comparison. Ratios are after/before. Intervals are the lower and upper ends of a 95 %
// interval. Absent fields are unknown.
type Result struct {
	Header
	Null     Comparison   `json:"null"`
	Variants []Comparison `json:"variants"`
	Baseline Summary      `json:"baseline"`
	Window   float64      `json:"window_seconds,omitempty"`
	Pacing   *Pacing      `json:"pacing,omitempty"` // absent if loads ran back to back
	Dropped  int          `json:"dropped_windows"`  // windows outside the execution-time bin of their load
	Card     Info         `json:"card"`
	SelfTest *SelfTest    `json:"self_test,omitempty"`
	Steady   *Steady      `json:"steady,omitempty"`
	Blocks   []Block      `json:"blocks"`
}

// Summary holds the means over a load's windows.
type Summary struct {
	Name        string   `json:"name"`
	Joules      float64  `json:"joules,omitempty"`  // per execution
	Watts       float64  `json:"watts,omitempty"`   // mean power
	Seconds     float64  `json:"seconds,omitempty"` // per execution
	SMClock     *float64 `json:"clock_mhz,omitempty"`
	Temperature *float64 `json:"temperature_c,omitempty"`
	Capped      *bool    `json:"capped,omitempty"` // at the power cap in at least half of the samples
	Throttle    []string `json:"throttle,omitempty"`
	Windows     int      `json:"windows"`
	// EffectiveClock, Duty and IdleJoules have the meaning of the fields of [Window].
	EffectiveClock *float64 `json:"effective_clock_mhz,omitempty"`
	Duty           float64  `json:"duty,omitempty"`
	IdleJoules     float64  `json:"idle_joules,omitempty"`
	// Limit is the cause that limited the clock, as far as the sensors show it.
	Limit Limit `json:"limit,omitempty"`
}

// Comparison compares a load with the baseline.
type Comparison struct {
	RelativeEnergy float64   `json:"relative_energy,omitempty"` // per execution
	Interval       []float64 `json:"interval,omitempty"`
	RelativeTime   float64   `json:"relative_time,omitempty"` // per execution
	TimeInterval   []float64 `json:"time_interval,omitempty"`
	Summary
	// EDP, EDS and GainMinusLoss are the results of the functions with these names.
	EDP           float64  `json:"relative_edp,omitempty"`
	EDS           float64  `json:"relative_eds,omitempty"`
	EDSk          float64  `json:"eds_k,omitempty"`
	GainMinusLoss *float64 `json:"energy_gain_minus_time_loss,omitempty"`
	// Blocks is the number of blocks in the ratios. Dropped is the number of blocks left out because an execution time
	// was outside its bin.
	Blocks  int `json:"blocks"`
	Dropped int `json:"dropped_blocks"`
}

// Block is one pass over all loads in random order and one pass in the reverse order. A linear drift adds the same
// amount to every load.
type Block struct {
	Windows []Window `json:"windows"`
	// Complete is false for an interrupted block, which is left out of the ratios.
	Complete bool `json:"complete"`
	// Arrangement is the arrangement of the loads' memory; see [Loads].
	Arrangement int `json:"arrangement,omitempty"`
}

// of returns the windows of a load.
func (b Block) of(load string) []Window {
	var own []Window
	for _, w := range b.Windows {
		if w.Load == load {
			own = append(own, w)
		}
	}
	return own
}

// Per converts a result to smaller pieces of work, of which every execution contains parts. Joules and seconds are then
// per piece, and executions are counted in pieces. Ratios do not change.
func (r *Result) Per(parts int) {
	n := float64(parts)
	part := func(s *Summary) { s.Joules /= n; s.Seconds /= n; s.IdleJoules /= n }
	windows := func(list []Window) {
		for i := range list {
			list[i].Per(parts)
		}
	}
	part(&r.Baseline)
	part(&r.Null.Summary)
	for i := range r.Variants {
		part(&r.Variants[i].Summary)
	}
	for _, b := range r.Blocks {
		windows(b.Windows)
	}
	if s := r.Steady; s != nil {
		windows(s.Windows)
		for i := range s.ExecutionTimes {
			s.ExecutionTimes[i] /= n
		}
	}
}

func newResult(card Card, opt Options) *Result {
	info := card.Info()
	return &Result{
		Header: NewHeader(info.Name, opt.Date, opt.Command, opt.Seed, opt.Precision),
		Card:   info, Variants: []Comparison{}, Blocks: []Block{},
	}
}

// inspect adds a warning if other processes use the card.
func (r *Result) inspect(card Card, self int) {
	all, err := card.Processes()
	if rest := Others(all, self); err == nil && len(rest) > 0 {
		var pids []string
		for _, p := range rest {
			pids = append(pids, fmt.Sprint(p.PID))
		}
		if len(pids) == 1 {
			r.Warn("another process uses the card (PID %s), and its energy is included in the results: end that process, or choose another card", pids[0])
		} else {
			r.Warn("other processes use the card (PIDs %s), and their energy is included in the results: end these processes, or choose another card", strings.Join(pids, ", "))
		}
	}
}

// heldDown are the reasons for a lower clock other than power and temperature.
var heldDown = (ApplicationClocks | HardwareSlowdown | SyncBoost | HardwarePowerBrake | DisplayClocks).Names()

// validate adds warnings about the final figures, and the reasons why they are not valid.
func (r *Result) validate() {
	for _, b := range r.Blocks {
		for _, w := range b.Windows {
			for _, odd := range w.odd {
				r.Warn("%s: implausible readings are left out", odd)
			}
			for _, reason := range w.Throttle {
				if slices.Contains(heldDown, reason) {
					r.Warn("the card's clock was limited (%s), so the measured energy and time hold only for the lower clock: remove the limit and measure again", reason)
				}
			}
		}
	}
	if r.Steady != nil && !r.Steady.Reached {
		r.Warn("the card did not reach a steady state during the warm-up, so its power may have drifted during the measurement: allow a longer warm-up")
	}
	for _, v := range r.Variants {
		if v.Blocks == 0 && v.Dropped > 0 {
			r.Invalidate("every block of %s was dropped because execution times varied: check for other work on the card", v.Name)
		}
	}
	switch null := r.Null.Interval; {
	case null == nil && r.Null.Dropped > 0:
		r.Invalidate("every block was dropped because execution times varied: check for other work on the card")
	case null == nil:
		r.Invalidate("no block was completed: allow more time")
	case null[0] > 1 || null[1] < 1:
		r.Invalidate("the null comparison's interval [%.4f, %.4f] does not contain 1, so this run shows a difference between identical weights: measure again for a longer time", null[0], null[1])
	}
}

// OnlyNull reports whether the result's only reason for not being valid is the null comparison, whose interval does not
// contain 1.
func (r *Result) OnlyNull() bool {
	null := r.Null.Interval
	return len(r.Invalid) == 1 && null != nil && (null[0] > 1 || null[1] < 1)
}
