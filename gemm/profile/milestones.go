package profile

import (
	"cmp"
	"slices"
	"time"
)

// Milestone is the power at one moment of a profile.
type Milestone struct {
	Name       string  `json:"name"`
	Executions float64 `json:"executions"` // number of executions done by At
	// Watts is the mean power over the time Over before the moment, with the ends of its 95 % interval. It is absent if
	// the trace is too coarse; see [Milestone.TooCoarse].
	Watts   float64  `json:"watts,omitempty"`
	Low     float64  `json:"low,omitempty"`
	High    float64  `json:"high,omitempty"`
	SMClock *float64 `json:"clock_mhz,omitempty"`
	At      Seconds  `json:"at_seconds"`
	Over    Seconds  `json:"over_seconds"`
}

// TooCoarse reports whether the averaging time Over is longer than the work before the moment, so that Watts would
// include power from before the work.
func (m Milestone) TooCoarse() bool { return m.Over > m.At }

// moments are the times of every profile's milestones. Moments after the first segment are left out.
var moments = []time.Duration{
	500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second,
}

// milestones returns the milestones of the first segment, including SSE and SSP.
func (p *Profile) milestones() (all []Milestone) {
	end := p.Segments[0].End
	for _, at := range moments {
		if at := Seconds(at); at <= end+end/100 { // a run of nominally 2 s may be slightly shorter
			at = min(at, end)
			m := p.milestone(at.String(), at)
			m.Over = max(at/10, p.Trace.ResolutionAt(at), p.Trace.Step)
			if !m.TooCoarse() {
				m.Watts, m.Low, m.High = p.Trace.Mean(at-m.Over, at)
			}
			all = append(all, m)
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
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Milestone) int { return cmp.Compare(a.At, b.At) })
	return all
}

// milestone returns a milestone without its power.
func (p *Profile) milestone(name string, at Seconds) Milestone {
	return Milestone{Name: name, At: at, Executions: p.mean.doneAt(at), SMClock: clockAt(p.States, at, p.Segments[0].End)}
}
