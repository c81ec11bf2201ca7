package profile

import (
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// Density has the number of fast-sensor readings that fall within one execution, over all golden runs, and the number
// that FinGraV's Table I asks for (logs of interest). A sensor with a reading every 20 ms may give no reading within an
// execution in a run of the paper's length. The trace uses the readings of all executions near a moment instead, so its
// resolution is longer than an execution.
type Density struct {
	Asked int `json:"asked"`        // readings within one execution, from Table I
	SSE   int `json:"sse_readings"` // readings within the execution of SSE
	SSP   int `json:"ssp_readings"` // readings within the execution of SSP
	// Steady counts the readings within all executions at steady power.
	Steady int `json:"steady_readings"`
	// Runs is the number of runs that would give Asked readings within one execution; 0 if no fast sensor is present.
	Runs int `json:"runs_needed"`
}

// Met reports whether the executions of SSE and SSP both have at least Asked readings.
func (d Density) Met() bool { return min(d.SSE, d.SSP) >= d.Asked }

// density counts the readings within the executions of the first segment.
func (p *Profile) density(advised Guidance) *Density {
	first := p.Segments[0]
	execution := first.End / Seconds(first.Executions)
	d := &Density{Asked: max(1, int(math.Ceil(float64(execution)/float64(max(1, advised.Density)))))}
	middle := map[string]Seconds{} // time from the middle of a reading's window to the reading
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
		each := float64(all) / float64(p.Golden) / float64(first.Executions) // readings per execution and run
		d.Runs = int(math.Ceil(float64(d.Asked) / each))
	}
	return d
}
