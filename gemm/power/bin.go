package power

import "slices"

// Margin of the execution-time bin, as a share, for executions of so many seconds: FinGraV's
// table I, 5 % up to 200 µs and 2 % above.
func Margin(seconds float64) float64 {
	if seconds <= 200e-6 {
		return 0.05
	}
	return 0.02
}

// Bin is a range of execution times, in seconds, that lie within the margin of each other.
type Bin struct {
	Low  float64 `json:"low_seconds"`
	High float64 `json:"high_seconds"`
}

// MainBin finds the fullest bin; of several equally full ones, that of the shortest times.
func MainBin(times []float64) Bin {
	sorted := slices.Sorted(slices.Values(times))
	var best Bin
	most := 0
	for i, j := 0, 0; i < len(sorted); i++ {
		high := sorted[i] * (1 + Margin(sorted[i]))
		for j < len(sorted) && sorted[j] <= high {
			j++
		}
		if j-i > most {
			best, most = Bin{sorted[i], high}, j-i
		}
	}
	return best
}

// Holds says whether a time is in the bin, ends included.
func (b Bin) Holds(seconds float64) bool { return b.Low <= seconds && seconds <= b.High }
