package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// SteadyPoint is the execution from which on execution time or power is steady.
type SteadyPoint struct {
	Found bool `json:"found"`
	// Why is the reason why no steady state was found, with the remaining change, or why steady power did not last to
	// the end.
	Why       string  `json:"why,omitempty"`
	Execution int     `json:"execution,omitempty"` // number of the execution, from 1
	Seconds   float64 `json:"seconds,omitempty"`   // duration of the execution
	// Watts is the mean power over the time Over before At, with the ends of its 95 % interval. It is unknown if Over
	// is longer than the time from the start of the work to At.
	Watts float64 `json:"watts,omitempty"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	At    Seconds `json:"at_seconds,omitzero"` // end of the execution
	// Over is the averaging time of Watts: the execution's duration, or the trace's resolution if that is longer.
	Over Seconds `json:"over_seconds,omitzero"`
	// Until is when power stopped being steady after SSP, to a 32nd of the run. Lasts reports whether power was steady
	// to the end. A card at its power cap may leave a steady state again.
	Until Seconds `json:"until_seconds,omitzero"`
	Lasts bool    `json:"to_the_end,omitempty"`
}

// SteadyState holds FinGraV's two points of interest.
type SteadyState struct {
	// SSE (steady-state execution) is the first execution after which the execution time no longer falls by more than the
	// binning margin.
	SSE SteadyPoint `json:"sse"`
	// SSP (steady-state power) is the first execution, no earlier than SSE, after which power no longer changes for at
	// least a quarter of the run; see [FindSteady].
	SSP SteadyPoint `json:"ssp"`
}

// FindSteady finds SSE in the timeline of one product, from the start of the runs, and SSP on the trace.
//
// The search for SSP starts at n = 4 executions and increases n by half each time. It compares power after n and after
// 2n executions. It ends when they differ by at most the tolerance (a relative change; 0 means 1 %). If the trace's 95
// % interval is wider than the tolerance, a difference up to the interval's width, at most three tolerances, also
// counts as equal. A bisection then finds the first steady execution. A warming die's power drifts: for moments more
// than a second apart, the tolerance is multiplied by the seconds between them.
//
// The paper measures each number of executions in a separate run; here one run contains all of them. The paper's rule
// would also accept the turning point of an oscillation. Therefore power must also be equal in between, and for at
// least a quarter of the run. FindSteady returns the first steady state that lasts to the end, or else the longest one;
// Until says when it ended. It ignores the last part of the trace, one resolution long, where the trace is least
// certain.
func FindSteady(trace *stitch.Trace, t Timeline, margin, tolerance float64) SteadyState {
	if trace == nil {
		trace = &stitch.Trace{}
	}
	s := steadySearch{trace, t, cmp.Or(tolerance, 0.01), 0}
	if len(t.At) > 0 {
		end := t.length()
		s.all = int(t.doneAt(end - min(trace.ResolutionAt(end), end/8)))
	}
	found := SteadyState{SSE: sse(t, margin)}
	found.SSP = s.ssp(found.SSE.Execution)
	if found.SSE.Found {
		s.setPower(&found.SSE)
	}
	return found
}

// sse finds the execution of SSE. It does not set the power.
func sse(t Timeline, margin float64) SteadyPoint {
	each := t.executionSeconds()
	if len(each) < 2 {
		return SteadyPoint{Why: "a run has fewer than two executions: take longer runs"}
	}
	for i, took := range each[:len(each)-1] {
		if took <= (1+margin)*slices.Min(each[i+1:]) {
			return SteadyPoint{Found: true, Execution: t.Done[i+1], At: t.At[i+1], Seconds: took}
		}
	}
	last := each[len(each)-2:]
	return SteadyPoint{Why: fmt.Sprintf("the last executions were still %.1f %% faster than the executions before: take longer runs", 100*(1-last[1]/last[0]))}
}

// steadySearch is a search for SSP.
type steadySearch struct {
	trace     *stitch.Trace
	timeline  Timeline
	tolerance float64
	all       int // number of executions considered
}

// mostUncertain is the largest half interval, in tolerances, with which a relevant change is still detected.
const mostUncertain = 3

// ofMany widens a 95 % interval so that it contains the largest of about twenty differences in 95 % of all searches.
const ofMany = 1.5

// firstExecutions is where the search starts.
const firstExecutions = 4

// uncertainty returns half of the relative 95 % interval of power over the last quarter of the run, where power should
// be steady. It is the median of several moments.
func (s steadySearch) uncertainty() float64 {
	const points = 16
	end := s.moment(s.all)
	var half []float64
	for i := range points {
		at := end - end/4*Seconds(i)/points
		w, low, high := s.powerBefore(at, max(end/4/points, s.over(s.all)))
		half = append(half, (high-low)/2/math.Abs(w))
	}
	return stats.Median(half)
}

// ssp finds SSP, at execution first or later.
func (s steadySearch) ssp(first int) SteadyPoint {
	if len(s.trace.Watts) == 0 || len(s.timeline.Done) < 2 {
		return SteadyPoint{Why: "there is no trace of power to search"}
	}
	if u := s.uncertainty(); u > mostUncertain*s.tolerance {
		return SteadyPoint{Why: fmt.Sprintf("power at the end is uncertain by ±%.1f %%, too much to show a change of %.1f %%: take more runs", 100*u, 100*s.tolerance)}
	}
	last := s.all / 2
	if last < firstExecutions {
		return SteadyPoint{Why: fmt.Sprintf("%d executions are too few: take longer runs", s.timeline.Done[len(s.timeline.Done)-1])}
	}
	n, until, why := s.longest(last)
	if n == 0 {
		return SteadyPoint{Why: why}
	}
	low, high := 0, n
	for high-low > 1 {
		if at := (low + high) / 2; s.until(at, 2*n) >= until {
			high = at
		} else {
			low = at
		}
	}
	high = max(high, first)
	found := SteadyPoint{Found: true, Execution: high, At: s.moment(high), Seconds: s.length(high), Until: s.moment(until), Lasts: until == s.all}
	if found.Lasts {
		found.Until = s.timeline.length()
	}
	s.setPower(&found)
	return found
}

// longest searches for a steady state: the first one that lasts to the end, or else the longest. It returns the first
// and last execution of that state, or the reason why there is none.
func (s steadySearch) longest(last int) (found, until int, why string) {
	lasting := Seconds(0)
	for n := firstExecutions; ; n = min(n+n/2, last) {
		resolved, changed := s.resolved(n), 0.0
		if resolved {
			var end int
			end, changed = s.steady(n, 2*n)
			if d := s.moment(end) - s.moment(n); end >= 2*n && d >= s.moment(s.all)/4 && (d > lasting || end == s.all) {
				found, until, lasting = n, end, d
			}
		}
		switch {
		case n < last && until < s.all:
		case found > 0:
			return found, until, ""
		case !resolved:
			resolution, take := s.trace.ResolutionAt(s.moment(n)), "longer"
			if resolution > stitch.CoarsestCell {
				take = "more"
			}
			return 0, 0, fmt.Sprintf("the trace's resolution is %v, too coarse for a run of %v: take %s runs", resolution, s.moment(s.all), take)
		default:
			return 0, 0, fmt.Sprintf("power still changed by %.1f %% between execution %d (%v) and %d (%v): take longer runs",
				100*changed, n, s.moment(n), s.all, s.moment(s.all))
		}
	}
}

// until returns the execution at which a steady state ends. n and other are the two executions with equal power.
func (s steadySearch) until(n, other int) int {
	end, _ := s.steady(n, other)
	return end
}

// explain sets Why if power was not steady to the end. Why then says whether the card was at its power cap.
func (p *SteadyPoint) explain(capped float64) {
	if p.Lasts {
		return
	}
	if p.Found {
		p.Why = fmt.Sprintf("power stayed within the tolerance until %v", p.Until)
	}
	if capped > 0.5 {
		p.Why = fmt.Sprintf("the card was at its power cap, where power swings for seconds: %s", p.Why)
	}
}

// setPower sets a point's power, averaged over its execution or over the trace's resolution, whichever is longer. The
// power stays unknown if the averaging time is longer than the time before the point.
func (s steadySearch) setPower(p *SteadyPoint) {
	if p.Over = s.over(p.Execution); p.Over <= p.At {
		p.Watts, p.Low, p.High = s.powerBefore(p.At, p.Over)
	}
}

func (s steadySearch) moment(n int) Seconds { return s.timeline.moment(n) }

// length returns the duration of execution n in seconds.
func (s steadySearch) length(n int) float64 { return (s.moment(n) - s.moment(n-1)).Seconds() }

// over returns the time over which power at an execution's end is averaged.
func (s steadySearch) over(n int) Seconds {
	return max(s.trace.ResolutionAt(s.moment(n)), s.trace.Step, stitch.Of(s.length(n)))
}

// resolved reports whether the trace's resolution distinguishes power after n executions from power after 2n executions
// and from power before the work.
func (s steadySearch) resolved(n int) bool {
	return s.moment(2*n)-s.moment(n) >= s.over(2*n) && s.moment(n) >= s.over(n)
}

// steady compares power after n executions with power after later ones. until is the last execution up to which power
// equals the power after the execution other; it is n if they already differ at n. by is the largest relative
// difference until the end of the run.
func (s steadySearch) steady(n, other int) (until int, by float64) {
	if n < 1 || s.moment(n) < s.over(n) {
		return n, 0
	}
	const parts = 8
	at := s.moment(other)
	part := (at - s.moment(n)) / parts
	there, low, high := s.powerBefore(at, max(part, s.over(other)))
	if there <= 0 { // there is no power to compare with
		return n, 1
	}
	unsure := (high - low) / 2
	steady := true
	until = n
	for ; n < s.all; n = min(2*n, s.all) {
		// No part is longer than a 32nd of the run, so that a dip is not averaged away.
		begin, end := s.moment(n), s.moment(min(2*n, s.all))
		part := max(min((end-begin)/parts, s.moment(s.all)/(4*parts)), 1)
		for t := begin; t <= end; t += part {
			w, low, high := s.powerBefore(t, max(part, s.over(n)))
			share := math.Abs(w-there) / there
			by = max(by, share)
			alike := min(mostUncertain*s.tolerance, ofMany*math.Hypot(unsure, (high-low)/2)/there)
			drifted := s.tolerance * max(1, (t-at).Abs().Seconds())
			if steady = steady && share <= max(drifted, alike); steady {
				until = max(until, int(s.timeline.doneAt(t)))
			}
		}
	}
	if steady {
		until = s.all
	}
	return until, by
}

// powerBefore returns the mean power over the time over before the moment at, with the ends of its 95 % interval.
func (s steadySearch) powerBefore(at, over Seconds) (watts, low, high float64) {
	return s.trace.Mean(max(0, at-over), at)
}
