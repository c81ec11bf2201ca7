package profile

import (
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Guidance is a row of FinGraV's Table I, profiling guidance by execution time.
type Guidance struct {
	Above   Seconds `json:"above_seconds"` // the row applies to executions longer than this
	Runs    int     `json:"runs"`
	Margin  float64 `json:"margin"`          // binning margin of execution times, as a share
	Density Seconds `json:"density_seconds"` // execution time per reading (log of interest, LOI)
}

const microsecond = Seconds(time.Microsecond)

// tableI is sorted by decreasing execution time. The paper gives no guidance below 25 µs; shorter executions use the
// row for 25 to 50 µs.
var tableI = []Guidance{
	{Above: 1000 * microsecond, Runs: 200, Margin: 0.02, Density: 10 * microsecond},
	{Above: 200 * microsecond, Runs: 200, Margin: 0.02, Density: 10 * microsecond},
	{Above: 50 * microsecond, Runs: 200, Margin: 0.05, Density: 10 * microsecond},
	{Above: 0, Runs: 400, Margin: 0.05, Density: 5 * microsecond},
}

// Guide returns the row of FinGraV's Table I for an execution time.
func Guide(execution time.Duration) Guidance {
	for _, row := range tableI {
		if Seconds(execution) > row.Above {
			return row
		}
	}
	return tableI[len(tableI)-1]
}

// Golden reports for each run whether it is golden. A run is golden if two of its execution times lie in the main bins
// of all runs: the time at SSE and the mean of the second half. The mean replaces the paper's time at SSP, because the
// clock may oscillate and a single execution is only one point of the oscillation. All runs must have the same entries
// in Done.
func Golden(runs []Timeline) []bool {
	golden := make([]bool, len(runs))
	if len(runs) == 0 || len(runs[0].Done) < 2 {
		return golden
	}
	mean := meanTimeline(runs)
	each := mean.executionSeconds()
	at := len(each) - 1
	if first := sse(mean, power.Margin(each[at])); first.Found {
		for mean.Done[at] >= first.Execution && at > 0 {
			at--
		}
	}
	all := mean.Done[len(mean.Done)-1]
	var atSSE, atSSP []float64
	for _, r := range runs {
		half := r.part(all/2, all)
		atSSE, atSSP = append(atSSE, r.executionSeconds()[at]), append(atSSP, half.length().Seconds()/float64(all-all/2))
	}
	sseBin, sspBin := power.MainBin(atSSE), power.MainBin(atSSP)
	for i := range runs {
		golden[i] = sseBin.Holds(atSSE[i]) && sspBin.Holds(atSSP[i])
	}
	return golden
}
