package power

import "slices"

// margin of the execution-time bin, as a share, for executions of so many seconds: FinGraV's
// table I, 5 % up to 200 µs and 2 % above.
func margin(seconds float64) float64 {
	if seconds <= 200e-6 {
		return 0.05
	}
	return 0.02
}

// bin is the range of execution times that lie within the margin of each other and are the most.
type bin struct{ low, high float64 }

// mainBin finds the fullest bin; of several equally full ones, that of the shortest times.
func mainBin(times []float64) bin {
	sorted := slices.Sorted(slices.Values(times))
	var best bin
	most := 0
	for i, j := 0, 0; i < len(sorted); i++ {
		high := sorted[i] * (1 + margin(sorted[i]))
		for j < len(sorted) && sorted[j] <= high {
			j++
		}
		if j-i > most {
			best, most = bin{sorted[i], high}, j-i
		}
	}
	return best
}

func (b bin) holds(seconds float64) bool { return b.low <= seconds && seconds <= b.high }
