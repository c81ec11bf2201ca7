package measure

import "gonum.org/v1/gonum/stat/distuv"

// MostMisses returns the largest plausible number of misses among n 95 % intervals: more misses have a chance below 5
// %.
func MostMisses(n int) int {
	misses := distuv.Binomial{N: float64(n), P: 0.05}
	k := 0
	for misses.CDF(float64(k)) < 0.95 {
		k++
	}
	return k
}

// InvalidReasons lists the reasons why results that belong together are not valid, each with its result's name. Null
// comparisons that miss 1 are left out if chance explains their number ([MostMisses]).
func InvalidReasons(names []string, results []*Result) (reasons []string) {
	missed := 0
	for _, r := range results {
		if r.OnlyNull() {
			missed++
		}
	}
	excused := missed <= MostMisses(len(results))
	for i, r := range results {
		if excused && r.OnlyNull() {
			continue
		}
		for _, reason := range r.Invalid {
			reasons = append(reasons, names[i]+": "+reason)
		}
	}
	return reasons
}
