package profile

import (
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// Density has the number of readings of the quick sensors within one execution, over all golden runs, and the number in FinGraV's
// Table I (logs of interest). A sensor that reads every 20 ms may give no such reading in a run of the paper's length. The trace
// uses the readings of all executions around a moment instead, so its resolution is longer than an execution.
type Density struct {
	Asked int `json:"asked"`        // readings within one execution, by Table I
	SSE   int `json:"sse_readings"` // within the execution of SSE
	SSP   int `json:"ssp_readings"` // within the execution of SSP
	// Steady counts the readings within any execution of steady power, which are alike.
	Steady int `json:"steady_readings"`
	// Runs is the number of runs that would give the readings asked for within one execution; 0 if no sensor is quick.
	Runs int `json:"runs_needed"`
}

// Met reports whether the executions of both points of interest have the readings that are asked for.
func (d Density) Met() bool { return min(d.SSE, d.SSP) >= d.Asked }

// density counts the readings within the first segment's executions.
func (p *Profile) density(advised Guidance) *Density {
	first := p.Segments[0]
	execution := first.End / Seconds(first.Executions)
	d := &Density{Asked: max(1, int(math.Ceil(float64(execution)/float64(max(1, advised.Density)))))}
	middle := map[string]Seconds{} // of what a reading averages over, before its moment
	for _, s := range p.Sensors {
		if s.Used && s.Name != stitch.Counter {
			middle[s.Name] = s.Delay + s.Window/2
		}
	}
	within := func(at Seconds, s SteadyPoint) int {
		if s.Found && at > p.mean.moment(s.Execution-1) && at <= s.At {
			return 1
		}
		return 0
	}
	all := 0
	for _, r := range p.readings {
		before, used := middle[r.Sensor]
		at := r.At - before
		if !used || at <= 0 || at > first.End {
			continue
		}
		all++
		d.SSE += within(at, p.Steady.SSE)
		d.SSP += within(at, p.Steady.SSP)
		if s := p.Steady.SSP; s.Found && at > s.At && at <= s.Until {
			d.Steady++
		}
	}
	if all > 0 {
		each := float64(all) / float64(p.Golden) / float64(first.Executions) // readings of an execution in one run
		d.Runs = int(math.Ceil(float64(d.Asked) / each))
	}
	return d
}
