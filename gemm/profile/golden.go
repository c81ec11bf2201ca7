package profile

import (
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Guidance is a row of FinGraV's Table I.
type Guidance struct {
	Above   time.Duration `json:"-"` // it is for executions that last longer than this
	Runs    int           `json:"runs"`
	Density time.Duration `json:"-"`      // of readings of interest: one for so much of an execution
	Margin  float64       `json:"margin"` // of the bin of execution times, as a share
}

// tableI has the longest executions first. The paper gives no advice below 25 µs; there the first row's is
// taken.
var tableI = []Guidance{
	{time.Millisecond, 200, 10 * time.Microsecond, 0.02},
	{200 * time.Microsecond, 200, 10 * time.Microsecond, 0.02},
	{50 * time.Microsecond, 200, 10 * time.Microsecond, 0.05},
	{0, 400, 5 * time.Microsecond, 0.05},
}

// Guide is the guidance for executions of a length.
func Guide(execution time.Duration) Guidance {
	for _, row := range tableI {
		if execution > row.Above {
			return row
		}
	}
	return tableI[len(tableI)-1]
}

// Golden says which runs are golden: those whose execution times at SSE and, on the mean, in their second half,
// where SSP is looked for, lie in the fullest bins of all runs' times. A single execution would say at which point of a
// swing of the clock a run was. All have the same entries in Done.
func Golden(runs []Progress) []bool {
	golden := make([]bool, len(runs))
	if len(runs) == 0 || len(runs[0].Done) < 2 {
		return golden
	}
	mean := meanProgress(runs)
	each := mean.each()
	at := len(each) - 1
	if first := sse(mean, power.Margin(each[at])); first.Found {
		for mean.Done[at] >= first.Execution && at > 0 {
			at--
		}
	}
	all := mean.Done[len(mean.Done)-1]
	var atSSE, atSSP []float64
	for _, r := range runs {
		half := part(r, all/2, all)
		atSSE, atSSP = append(atSSE, r.each()[at]), append(atSSP, half.At[len(half.At)-1].Seconds()/float64(all-all/2))
	}
	sseBin, sspBin := power.MainBin(atSSE), power.MainBin(atSSP)
	for i := range runs {
		golden[i] = sseBin.Holds(atSSE[i]) && sspBin.Holds(atSSP[i])
	}
	return golden
}
