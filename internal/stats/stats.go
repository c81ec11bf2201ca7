// Package stats has statistics for several packages that gonum does not offer in this form.
package stats

import (
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Student returns the two-sided quantile of Student's t distribution: the share confidence of the values lies within
// ± the quantile. For the interval of the mean of n values, freedom is n-1.
func Student(freedom, confidence float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1 + confidence) / 2)
}

// Median returns the middle of the values; for an even number, it is the mean of the middle two. values must have at
// least one element and no NaN. It does not change values.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
