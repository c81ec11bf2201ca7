package measure

import "gonum.org/v1/gonum/stat/distuv"

// MostMisses is how many of n intervals of 95 % miss what is true by chance, but for one time in twenty.
func MostMisses(n int) int {
	misses := distuv.Binomial{N: float64(n), P: 0.05}
	k := 0
	for misses.CDF(float64(k)) < 0.95 {
		k++
	}
	return k
}

// OnlyNull says that a result is invalid for nothing but its null comparison, which does not contain 1.
func (r *Result) OnlyNull() bool {
	null := r.Null.Interval
	return len(r.Invalid) == 1 && null != nil && (null[0] > 1 || null[1] < 1)
}

// Against lists what speaks against results that belong together, each by its name: all that speaks against
// one of them, but for null comparisons that miss 1 where chance makes as many of so many.
func Against(names []string, results []*Result) (reasons []string) {
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
