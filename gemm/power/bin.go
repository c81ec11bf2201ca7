package power

import "slices"

// Margin returns the relative width of the bin for an execution time in seconds: 5 % up to 200 µs and 2 % above, as in
// FinGraV's Table I.
func Margin(seconds float64) float64 {
	if seconds <= 200e-6 {
		return 0.05
	}
	return 0.02
}

// Bin is a range of execution times in seconds.
type Bin struct {
	Low  float64 `json:"low_seconds"`
	High float64 `json:"high_seconds"`
}

// MainBin returns the bin that contains the most times, given in seconds. If several bins contain equally many, it
// returns the one with the shortest times.
func MainBin(times []float64) Bin {
	sorted := slices.Sorted(slices.Values(times))
	var best Bin
	var most, j int
	for i, low := range sorted {
		high := low * (1 + Margin(low))
		for j < len(sorted) && sorted[j] <= high {
			j++
		}
		if j-i > most {
			best, most = Bin{low, high}, j-i
		}
	}
	return best
}

// Holds reports whether a time in seconds is in the bin, including its ends.
func (b Bin) Holds(seconds float64) bool { return b.Low <= seconds && seconds <= b.High }
