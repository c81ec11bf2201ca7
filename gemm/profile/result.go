package profile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Result is what a profile found; what is absent is not known.
type Result struct {
	GPU       string     `json:"gpu"`
	Card      power.Info `json:"card"`
	Platform  *cuda.Info `json:"platform,omitempty"`
	Simulated bool       `json:"simulated,omitempty"` // figures mean nothing
	Interval  string     `json:"interval"`            // what low and high are the ends of: "95 %"
	Products  []Product  `json:"products"`
	// Profiles: of each product, from idleness; where there are two, the other one follows.
	Profiles []Profile `json:"profiles"`
	// After: each product right after the other; empty where there is one.
	After    []After         `json:"after,omitempty"`
	SelfTest *power.SelfTest `json:"self_test,omitempty"`
	Sync     *Sync           `json:"sync,omitempty"`
	// Stopped says why: "runs", "time", "cancelled" or "failed".
	Stopped  string   `json:"stopped"`
	Seconds  float64  `json:"runs_seconds"` // that all runs took
	Warnings []string `json:"warnings,omitempty"`
	Date     string   `json:"date,omitempty"`
	Command  string   `json:"command,omitempty"`
	Again    string   `json:"again,omitempty"` // the command that made the curves anew, from the readings
	Seed     uint64   `json:"seed"`
}

// Product that was profiled.
type Product struct {
	Name      string          `json:"name"`
	Problem   gemm.Problem    `json:"problem"`
	W         string          `json:"w,omitempty"` // where its operands come from; Take cannot tell
	X         string          `json:"x,omitempty"`
	Kernel    *cuda.Kernel    `json:"kernel,omitempty"`
	Deviation *gemm.Deviation `json:"deviation,omitempty"` // of its result from the reference
	Seconds   float64         `json:"seconds"`             // of an execution, when it was timed
	Advised   Guidance        `json:"advised"`
}

// Profile is the power of golden runs, over the time since their work began.
type Profile struct {
	Legs []Leg `json:"legs"`
	// Runs that were taken, those of them that are golden, and the number that table I advises.
	Taken   int   `json:"runs_taken"`
	Golden  int   `json:"runs_golden"`
	Advised int   `json:"runs_advised"`
	Runs    []Run `json:"runs"`
	Late    int   `json:"late_readings"` // left out, because nobody knows when they changed
	// Curve is nil where there were too few readings.
	Curve   *Curve   `json:"curve,omitempty"`
	Sensors []Sensor `json:"sensors,omitempty"`
	// Steady is the first leg's.
	Steady     SteadyState `json:"steady"`
	Milestones []Milestone `json:"milestones,omitempty"` // of the first leg
	Inside     *Inside     `json:"inside,omitempty"`
	States     []State     `json:"states,omitempty"`
	Throttle   []string    `json:"throttle,omitempty"` // every reason that was seen while it worked
	// Readings and Paces, how each golden run got on, are there where they were asked for; see [Again].
	Readings []Reading        `json:"readings,omitempty"`
	Paces    map[int]Progress `json:"paces,omitempty"`

	throttle power.Throttle
	progress Progress         // of the mean golden run
	usual    Progress         // of one at an even pace
	paces    map[int]Progress // of golden runs
	readings []Reading
}

// Leg is one product's part of the runs.
type Leg struct {
	Product    int           `json:"product"` // of the result's, from 0
	Name       string        `json:"name"`
	Executions int           `json:"executions"`
	Begin      time.Duration `json:"-"`
	End        time.Duration `json:"-"`
}

// Run is one in short.
type Run struct {
	Begin       float64  `json:"begin_seconds"` // by the clock of the measurement
	Seconds     float64  `json:"seconds"`       // of an execution of its first leg, on average
	Golden      bool     `json:"golden"`
	Readings    int      `json:"readings"`
	Temperature *float64 `json:"temperature_c,omitempty"` // at the end
}

// Milestone is a moment of a profile.
type Milestone struct {
	Name       string        `json:"name"`
	At         time.Duration `json:"-"`
	Executions float64       `json:"executions"` // done by then
	// Over is so much time up to the moment that watts are the mean of. They are absent where it is more than
	// has passed: the curve is too coarse then to tell power at the moment from what follows.
	Over    time.Duration `json:"-"`
	Watts   float64       `json:"watts,omitempty"`
	Low     float64       `json:"low,omitempty"`
	High    float64       `json:"high,omitempty"`
	SMClock *float64      `json:"clock_mhz,omitempty"`
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
	r.inspect(m.Card(), o.Self)
	return r
}

// inspect warns of others on the card.
func (r *Result) inspect(card power.Card, self int) {
	all, err := card.Processes()
	if err != nil {
		return
	}
	if rest := power.Others(all, self); len(rest) > 0 {
		r.warn("another process is on the card (%d): its power counts as ours; run this alone", rest[0].PID)
	}
}

// warn adds a warning once.
func (r *Result) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}

// Steady says whether every profile came to steady power.
func (r *Result) Steady() bool {
	return len(r.Profiles) > 0 && !slices.ContainsFunc(r.Profiles, func(p Profile) bool { return !p.Steady.SSP.Found })
}

// End of the work.
func (p *Profile) End() time.Duration {
	if len(p.Legs) == 0 {
		return 0
	}
	return p.Legs[len(p.Legs)-1].End
}

// Temperatures of the die at the ends of runs, in °C: the lowest and the highest; ok is false where none
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

// AtRest is the power before the work, with its 95 % interval, and the clock, nil where it is not known. A card that
// worked shortly before draws more than an idle one, and its clock may still be high.
func (p *Profile) AtRest() (watts, low, high float64, clock *float64) {
	const before = -20 * time.Millisecond // in the last cells before it the work may show
	watts, low, high = p.Curve.Mean(-lead, before)
	var sum tally
	for _, s := range p.States {
		if s.At < before {
			sum.add(s.SMClock)
		}
	}
	return watts, low, high, sum.value()
}

// Rise is what counts as the beginning of a profile: power has changed most by then.
const Rise = 50 * time.Millisecond

// Resolution is the median over the curve's cells from one moment to another; 0 without a curve. Where
// power hardly changes the curve is coarser than where it rises.
func (p *Profile) Resolution(from, to time.Duration) time.Duration {
	if p.Curve == nil {
		return 0
	}
	var all []float64
	for i, r := range p.Curve.Resolution {
		if at := p.Curve.Start + time.Duration(i)*p.Curve.Step; at >= from && at < to {
			all = append(all, r.Seconds())
		}
	}
	if len(all) == 0 {
		return 0
	}
	return seconds(stats.Median(all))
}

// Coarsest is the resolution of the curve's coarsest cell while the work runs; 0 without a curve.
func (p *Profile) Coarsest() (worst time.Duration) {
	if p.Curve == nil {
		return 0
	}
	for i, r := range p.Curve.Resolution {
		if at := p.Curve.Start + time.Duration(i)*p.Curve.Step; at >= 0 && at < p.End() {
			worst = max(worst, r)
		}
	}
	return worst
}

// moments of a profile that are always told, as far as the first leg goes.
var moments = []time.Duration{
	500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second,
}

func (p *Profile) milestones() {
	end := p.Legs[0].End
	for _, at := range moments {
		if at <= end+end/100 { // a run of two seconds is not so to the millisecond
			at = min(at, end)
			m := p.milestone(TimeText(at), at)
			m.Over = max(at/10, p.Curve.ResolutionAt(at), p.Curve.Step)
			if !m.Early() {
				m.Watts, m.Low, m.High = p.Curve.Mean(at-m.Over, at)
			}
			p.Milestones = append(p.Milestones, m)
		}
	}
	for _, s := range []struct {
		name string
		SteadyPoint
	}{{"SSE", p.Steady.SSE}, {"SSP", p.Steady.SSP}} {
		if s.Found {
			m := p.milestone(s.name, s.At)
			m.Executions, m.Over = float64(s.Execution), s.Over
			m.Watts, m.Low, m.High = s.Watts, s.Low, s.High
			p.Milestones = append(p.Milestones, m)
		}
	}
	slices.SortStableFunc(p.Milestones, func(a, b Milestone) int { return cmp.Compare(a.At, b.At) })
}

// Early says whether the curve is too coarse to tell power at the moment from what follows.
func (m Milestone) Early() bool { return m.Over > m.At }

// milestone is a moment without its power.
func (p *Profile) milestone(name string, at time.Duration) Milestone {
	return Milestone{Name: name, At: at, Executions: doneAt(p.progress, at), SMClock: clockAt(p.States, at, p.Legs[0].End)}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
