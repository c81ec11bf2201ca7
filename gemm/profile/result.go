package profile

import (
	"fmt"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Result is the result of a measurement. An absent field means an unknown value.
type Result struct {
	GPU       string     `json:"gpu"`
	Card      power.Info `json:"card"`
	Platform  *cuda.Info `json:"platform,omitempty"`
	Simulated bool       `json:"simulated,omitempty"` // whether the card is simulated; simulated figures say nothing about a real card
	Interval  string     `json:"interval"`            // interval between the low and high fields: "95 %"
	Products  []Product  `json:"products"`
	// Profiles has one profile for each product, starting from an idle card. With several products, the next product is
	// the second segment of each profile.
	Profiles []Profile `json:"profiles"`
	// Interleaved compares each product right after another product with the same product alone. It is empty for one
	// product.
	Interleaved []Interleaved   `json:"after,omitempty"`
	SelfTest    *power.SelfTest `json:"self_test,omitempty"`
	Sync        *ClockSync      `json:"sync,omitempty"`
	// Stopped is why the runs ended: "runs", "time", "cancelled" or "failed".
	Stopped    string   `json:"stopped"`
	Seconds    float64  `json:"runs_seconds"` // duration of all runs
	Warnings   []string `json:"warnings,omitempty"`
	Date       string   `json:"date,omitempty"`
	Command    string   `json:"command,omitempty"`
	Recomputed string   `json:"again,omitempty"` // the command that recomputed the traces from the readings
	Seed       uint64   `json:"seed"`
}

// Product is a profiled product, or a copy within the card.
type Product struct {
	Name      string          `json:"name"`
	Problem   *gemm.Problem   `json:"problem,omitempty"`
	Copied    int64           `json:"copied_bytes,omitempty"` // bytes that one execution reads; it writes as many
	W         string          `json:"w,omitempty"`            // source of the weights; the caller fills it in
	X         string          `json:"x,omitempty"`            // source of the activations; the caller fills it in
	Kernel    *cuda.Kernel    `json:"kernel,omitempty"`
	Deviation *gemm.Deviation `json:"deviation,omitempty"` // deviation of the product's result from the reference
	Seconds   float64         `json:"seconds"`             // duration of an execution in the timing
	Advised   Guidance        `json:"advised"`
}

// Profile is the power during the golden runs of one launch sequence, over the time since the start of the work.
type Profile struct {
	Segments     []Segment `json:"legs"`
	Taken        int       `json:"runs_taken"`
	Golden       int       `json:"runs_golden"`
	Advised      int       `json:"runs_advised"` // number of runs that FinGraV's Table I advises
	Runs         []Run     `json:"runs"`
	LateReadings int       `json:"late_readings"` // number of readings left out because the time of their change is unknown
	// Trace is nil if there were too few readings.
	Trace      *stitch.Trace   `json:"curve,omitempty"`
	Sensors    []stitch.Sensor `json:"sensors,omitempty"`
	Steady     SteadyState     `json:"steady"`                     // steady state of the first segment
	Density    *Density        `json:"logs_of_interest,omitempty"` // reading density in the first segment
	Milestones []Milestone     `json:"milestones,omitempty"`       // milestones of the first segment
	Execution  *Execution      `json:"inside,omitempty"`           // power within one execution of the first segment
	Bursts     []Bursts        `json:"bursts,omitempty"`           // bursts of the first product
	Counted    []Counted       `json:"counted,omitempty"`          // power from the bursts' energy
	States     []State         `json:"states,omitempty"`
	Throttle   []string        `json:"throttle,omitempty"` // every reason for a lower clock that was seen while the card worked
	// Readings and Timelines of the golden runs are present only on request; see [Recompute].
	Readings  []stitch.Reading `json:"readings,omitempty"`
	Timelines map[int]Timeline `json:"paces,omitempty"`

	throttle  power.Throttle
	mean      Timeline         // mean timeline of the golden runs
	usual     Timeline         // mean timeline with a constant speed in every segment
	timelines map[int]Timeline // timelines of the golden runs, by run number
	readings  []stitch.Reading
}

// Segment is one product's part of a launch sequence.
type Segment struct {
	Product    int     `json:"product"` // index into the result's products
	Name       string  `json:"name"`
	Executions int     `json:"executions"`
	Begin      Seconds `json:"begin_seconds"`
	End        Seconds `json:"end_seconds"`
}

// Run summarises one run.
type Run struct {
	Begin       float64  `json:"begin_seconds"` // start of the run by the measurement's clock
	Seconds     float64  `json:"seconds"`       // mean duration of an execution in the first segment
	Golden      bool     `json:"golden"`
	Readings    int      `json:"readings"`
	Temperature *float64 `json:"temperature_c,omitempty"` // temperature at the end of the run
}

func newResult(m measure.Machine, o Options) *Result {
	r := &Result{
		Card: m.Card().Info(), Platform: m.Platform(), Simulated: m.Platform() == nil, Interval: "95 %",
		Products: []Product{}, Profiles: []Profile{}, Command: o.Command, Seed: o.Seed,
	}
	r.GPU = r.Card.Name
	if !o.Date.IsZero() {
		r.Date = o.Date.Format(time.RFC3339)
	}
	r.warnOfOthers(m.Card(), o.Self)
	return r
}

// warnOfOthers adds a warning if other processes use the card.
func (r *Result) warnOfOthers(card power.Card, self int) {
	all, err := card.Processes()
	if err != nil {
		return
	}
	if rest := power.Others(all, self); len(rest) > 0 {
		r.warn("another process uses the card (PID %d), and its power is included in the results: end that process and measure again", rest[0].PID)
	}
}

// warn adds a warning, unless the same warning is already there.
func (r *Result) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}

// Interrupted reports whether the measurement was interrupted or failed.
func (r *Result) Interrupted() bool {
	return r.Stopped == stoppedByContext || r.Stopped == stoppedByError
}

// HasTrace reports whether any profile has a trace.
func (r *Result) HasTrace() bool {
	return slices.ContainsFunc(r.Profiles, func(p Profile) bool { return p.Trace != nil })
}

// Steady reports whether every profile reached steady power and stayed steady to the end.
func (r *Result) Steady() bool {
	return len(r.Profiles) > 0 && !slices.ContainsFunc(r.Profiles, func(p Profile) bool { return !p.Steady.SSP.Lasts })
}

// Resolves reports whether every trace has the given resolution or a finer one.
func (r *Result) Resolves(resolution time.Duration) bool {
	return !slices.ContainsFunc(r.Profiles, func(p Profile) bool { return p.Trace == nil || p.Coarsest() > Seconds(resolution) })
}

// End returns the end of the work.
func (p *Profile) End() Seconds {
	if len(p.Segments) == 0 {
		return 0
	}
	return p.Segments[len(p.Segments)-1].End
}

// Temperatures returns the lowest and highest die temperature at the end of a run, in °C. ok is false if no temperature
// is known.
func (p *Profile) Temperatures() (low, high float64, ok bool) {
	for _, r := range p.Runs {
		if r.Temperature != nil {
			if !ok {
				low, high, ok = *r.Temperature, *r.Temperature, true
			}
			low, high = min(low, *r.Temperature), max(high, *r.Temperature)
		}
	}
	return low, high, ok
}

// BeforeWork returns the power before the work in watts, the ends of its 95 % interval, and the clock in MHz. clock is
// nil if it is unknown. A card that worked shortly before draws more than an idle card, and its clock may still be
// high.
func (p *Profile) BeforeWork() (watts, low, high float64, clock *float64) {
	const before = -20 * ms // the cells directly before 0 may contain power of the work
	watts, low, high = p.Trace.Mean(-Seconds(margin), before)
	var sum mean
	for _, s := range p.States {
		if s.At < before {
			sum.add(s.SMClock)
		}
	}
	return watts, low, high, sum.value()
}

// SecondHalf returns the mean power over the second half of the first segment in watts, the ends of its 95 % interval,
// and the mean clock in MHz. clock is nil if it is unknown. Without a segment all power values are 0.
func (p *Profile) SecondHalf() (watts, low, high float64, clock *float64) {
	if len(p.Segments) == 0 {
		return 0, 0, 0, nil
	}
	end := p.Segments[0].End
	watts, low, high = p.Trace.Mean(end/2, end)
	var sum mean
	for _, s := range p.States {
		if s.At > end/2 && s.At < end {
			sum.add(s.SMClock)
		}
	}
	return watts, low, high, sum.value()
}

// EarlyTime is the length of a profile's beginning, in which most of the change of power takes place.
const EarlyTime = 50 * ms

// Resolution returns the median resolution of the trace's cells between two moments; 0 without a trace. The trace is
// finest where power rises and coarser where it hardly changes.
func (p *Profile) Resolution(from, to Seconds) Seconds {
	if p.Trace == nil {
		return 0
	}
	var all []float64
	for i, r := range p.Trace.Resolution {
		if at := p.Trace.Start + Seconds(i)*p.Trace.Step; at >= from && at < to {
			all = append(all, r.Seconds())
		}
	}
	if len(all) == 0 {
		return 0
	}
	return stitch.Of(stats.Median(all))
}

// Coarsest returns the resolution of the trace's coarsest cell while the card works; 0 without a trace.
func (p *Profile) Coarsest() (worst Seconds) {
	if p.Trace == nil {
		return 0
	}
	for i, r := range p.Trace.Resolution {
		if at := p.Trace.Start + Seconds(i)*p.Trace.Step; at >= 0 && at < p.End() {
			worst = max(worst, r)
		}
	}
	return worst
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
