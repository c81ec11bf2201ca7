package divergence

import (
	"fmt"
	"math"
	"sort"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// mostNeeded is the largest result of Needed.
const mostNeeded = 1 << 30

// Needed estimates how many sequences a comparison needs for an interval of ± budget, in nats per token. It
// extrapolates from an observed comparison over the given number of sequences, so the estimate is rough if
// they are few. The largest result is 1<<30. A comparison without a finite interval is an error.
func Needed(observed forward.Comparison, sequences int, budget float64) (int, error) {
	half := (observed.High - observed.Low) / 2
	switch {
	case !(budget > 0):
		return 0, fmt.Errorf("the budget is %v nats per token: give one above 0", budget)
	case sequences < 2 || !(half >= 0 && half <= math.MaxFloat64):
		return 0, fmt.Errorf("a comparison over %d sequences has no finite interval to extrapolate from: compare over at least two", sequences)
	}
	deviation := half / halfWidth(sequences)
	more := sort.Search(mostNeeded-2, func(i int) bool { return deviation*halfWidth(i+2) < budget })
	return more + 2, nil
}

// halfWidth returns half of the 95 % interval of the mean of n values with a standard deviation of 1, by Student's distribution.
func halfWidth(n int) float64 {
	return stats.Student(float64(n-1), 0.95) / math.Sqrt(float64(n))
}
