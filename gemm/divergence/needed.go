package divergence

import (
	"fmt"
	"math"
	"sort"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// mostNeeded bounds what Needed says.
const mostNeeded = 1 << 30

// Needed is how many sequences a comparison would need so that half its interval is below budget, in
// nats per token, where one over so many sequences came out as observed. It takes the deviation of
// those for that of any others, so it is a hint, and a poor one from a few; it says 1<<30 where not
// even those would do. It fails where there is no deviation to go by.
func Needed(observed forward.Comparison, sequences int, budget float64) (int, error) {
	half := (observed.High - observed.Low) / 2
	switch {
	case !(budget > 0):
		return 0, fmt.Errorf("the budget for the loss is %v nats: give one above 0", budget)
	case sequences < 2 || !(half >= 0 && half <= math.MaxFloat64):
		return 0, fmt.Errorf("%d sequences say nothing of how much more are needed: compare over at least two", sequences)
	}
	deviation := half / halfWidth(sequences)
	more := sort.Search(mostNeeded-2, func(i int) bool { return deviation*halfWidth(i+2) < budget })
	return more + 2, nil
}

// halfWidth is that of the 95 % interval of a mean of n values with a deviation of 1: Student's.
func halfWidth(n int) float64 {
	return stats.Student(float64(n-1), 0.95) / math.Sqrt(float64(n))
}
