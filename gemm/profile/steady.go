package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Progress of a run: so many executions were done so long after its start. The first entry is 0 at 0;
// between entries executions are taken to be equally long.
type Progress struct {
	Done []int           `json:"done"`
	At   []time.Duration `json:"-"`
}

// each is the length in seconds of the executions before each entry but the first.
func (p Progress) each() (each []float64) {
	for i := 1; i < len(p.Done); i++ {
		each = append(each, (p.At[i]-p.At[i-1]).Seconds()/float64(max(1, p.Done[i]-p.Done[i-1])))
	}
	return each
}

// SteadyPoint is an execution with which something became steady.
type SteadyPoint struct {
	Found bool `json:"found"`
	// Why it was not found, and by how much things still changed.
	Why string `json:"why,omitempty"`
	// Execution is its number, from 1.
	Execution int           `json:"execution,omitempty"`
	At        time.Duration `json:"-"`                 // its end
	Seconds   float64       `json:"seconds,omitempty"` // its length
	// Over is that length, or the resolution where that is longer: so much time up to At watts are the mean. Where
	// there is no more time than that before At, they are not known.
	Over  time.Duration `json:"-"`
	Watts float64       `json:"watts,omitempty"`
	Low   float64       `json:"low,omitempty"` // ends of the 95 % interval
	High  float64       `json:"high,omitempty"`
}

// SteadyState holds FinGraV's two points of interest.
type SteadyState struct {
	// SSE is the first execution after which the execution time no longer falls beyond the margin.
	SSE SteadyPoint `json:"sse"`
	// SSP is the first execution, no earlier than SSE, after which no change of power is seen; see [FindSteady].
	SSP SteadyPoint `json:"ssp"`
}

// FindSteady finds SSE in p and SSP on the curve: the number of executions begins at four and doubles until
// power after so many and power after twice as many differ by no more than the tolerance, a share (0 is 1 %),
// or by no more than the curve can tell, up to three tolerances; then it is bisected. So a change of three tolerances
// counts as steady where the 95 % intervals are as wide. The paper runs each number of
// executions; but a run of twice as many holds one of as many. It also shows what the paper's rule takes for
// steady at the turn of a swing: power has to stay the same in between, and to within the resolution of the
// end, where the curve is least sure. p is the progress of one product from the start of the runs.
func FindSteady(c *Curve, p Progress, margin, tolerance float64) SteadyState {
	s := search{c, p, cmp.Or(tolerance, 0.01), 0}
	if len(p.At) > 0 {
		end := p.At[len(p.At)-1]
		s.all = int(doneAt(p, end-min(c.ResolutionAt(end), end/8)))
	}
	found := SteadyState{SSE: sse(p, margin)}
	found.SSP = s.ssp(found.SSE.Execution)
	if found.SSE.Found {
		s.power(&found.SSE)
	}
	return found
}

// sse finds the execution, without its power.
func sse(p Progress, margin float64) SteadyPoint {
	each := p.each()
	if len(each) < 2 {
		return SteadyPoint{Why: "there are not enough executions: take longer runs"}
	}
	for i, took := range each[:len(each)-1] {
		if took <= (1+margin)*slices.Min(each[i+1:]) {
			return SteadyPoint{Found: true, Execution: p.Done[i+1], At: p.At[i+1], Seconds: took}
		}
	}
	last := each[len(each)-2:]
	return SteadyPoint{Why: fmt.Sprintf("the last executions still took %.1f %% less than those before: take longer runs", 100*(1-last[1]/last[0]))}
}

// search for SSP.
type search struct {
	*Curve
	Progress
	tolerance float64
	all       int // executions that are looked at
}

// vague are so many tolerances: where power is known no better, no change that matters would be seen, and
// that none was seen says nothing.
const vague = 3

// sure is how well power is known over the last quarter of the run, where it should be steady: half of the 95 %
// interval of a point of it, as a share, the median.
func (s search) sure() float64 {
	const points = 16
	end := s.moment(s.all)
	var half []float64
	for i := range points {
		at := end - end/4*time.Duration(i)/points
		w, low, high := s.ending(at, max(end/4/points, s.over(s.all)))
		half = append(half, (high-low)/2/math.Abs(w))
	}
	return stats.Median(half)
}

// fewest executions with which the search begins.
const fewest = 4

// ssp is at the first execution or later.
func (s search) ssp(first int) SteadyPoint {
	if len(s.Watts) == 0 || len(s.Done) < 2 {
		return SteadyPoint{Why: "there is no curve to find it on"}
	}
	if sure := s.sure(); sure > vague*s.tolerance {
		return SteadyPoint{Why: fmt.Sprintf("power at the end is known to ±%.1f %% only, which shows no change of %.1f %%: take more runs", 100*sure, 100*s.tolerance)}
	}
	last := s.all / 2
	if last < fewest {
		return SteadyPoint{Why: fmt.Sprintf("%d executions are too few: take longer runs", s.Done[len(s.Done)-1])}
	}
	n, changed := fewest, 0.0
	for told := false; ; n = min(2*n, last) {
		if told = s.told(n); told {
			var steady bool
			if steady, changed = s.steady(n, 2*n); steady {
				break
			}
		}
		if n < last {
			continue
		}
		if !told {
			resolution, take := s.ResolutionAt(s.moment(n)), "longer"
			if resolution > coarsest {
				take = "more"
			}
			return SteadyPoint{Why: fmt.Sprintf("the curve's resolution is %s, too coarse for a run of %s: take %s runs",
				TimeText(resolution), TimeText(s.moment(s.all)), take)}
		}
		return SteadyPoint{Why: fmt.Sprintf("power still changed by %.1f %% between execution %d (%s) and %d (%s): take longer runs",
			100*changed, n, TimeText(s.moment(n)), s.all, TimeText(s.moment(s.all)))}
	}
	low, high, twice := 0, n, 2*n
	for high-low > 1 {
		n := (low + high) / 2
		if steady, _ := s.steady(n, twice); steady {
			high = n
		} else {
			low = n
		}
	}
	high = max(high, first)
	found := SteadyPoint{Found: true, Execution: high, At: s.moment(high), Seconds: s.length(high)}
	s.power(&found)
	return found
}

// power at a point: over its execution or over the resolution, whichever is longer, where there is as much time.
func (s search) power(p *SteadyPoint) {
	if p.Over = s.over(p.Execution); p.Over <= p.At {
		p.Watts, p.Low, p.High = s.ending(p.At, p.Over)
	}
}

func (s search) moment(n int) time.Duration { return momentOf(s.Progress, n) }

// length of an execution, in seconds.
func (s search) length(n int) float64 { return (s.moment(n) - s.moment(n-1)).Seconds() }

// over is how long power at an execution's end is averaged.
func (s search) over(n int) time.Duration {
	return max(s.ResolutionAt(s.moment(n)), s.Step, seconds(s.length(n)))
}

// told says whether the curve can tell power after n executions from that after twice as many, and from that
// before the first.
func (s search) told(n int) bool {
	return s.moment(2*n)-s.moment(n) >= s.over(2*n) && s.moment(n) >= s.over(n)
}

// steady says whether power is constant from n executions on, and by what share it differs at most from that
// at another number of them.
func (s search) steady(n, other int) (steady bool, by float64) {
	if n < 1 || s.moment(n) < s.over(n) {
		return false, 0
	}
	const parts = 8
	part := (s.moment(other) - s.moment(n)) / parts
	there, low, high := s.ending(s.moment(other), max(part, s.over(other)))
	if there <= 0 { // no power that anything could be a share of
		return false, 1
	}
	unsure := (high - low) / 2
	steady = true
	for ; n < s.all; n = min(2*n, s.all) {
		begin, end := s.moment(n), s.moment(min(2*n, s.all))
		part := max((end-begin)/parts, 1)
		for at := begin; at <= end; at += part {
			w, low, high := s.ending(at, max(part, s.over(n)))
			share := math.Abs(w-there) / there
			by = max(by, share)
			alike := min(vague*s.tolerance, math.Hypot(unsure, (high-low)/2)/there)
			steady = steady && share <= max(s.tolerance, alike)
		}
	}
	return steady, by
}

// ending is mean power over the time before a moment.
func (s search) ending(at, over time.Duration) (watts, low, high float64) {
	return s.Mean(max(0, at-over), at)
}
