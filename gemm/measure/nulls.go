package measure

import "gonum.org/v1/gonum/stat/distuv"

// MostMisses returns the number of misses that n 95 % intervals of true values exceed with less than 5 % chance.
func MostMisses(n int) int {
	misses := distuv.Binomial{N: float64(n), P: 0.05}
	k := 0
	for misses.CDF(float64(k)) < 0.95 {
		k++
	}
	return k
}

// InvalidReasons lists the reasons against results that belong together, each with its result's name. Null
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
