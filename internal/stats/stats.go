// Package stats holds the statistics that several packages need and gonum does not offer in this form.
package stats

import (
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Student returns the two-sided quantile of Student's t distribution: the share confidence of its values
// lies within ± the quantile. The interval of the mean of n values has n-1 degrees of freedom.
func Student(freedom, confidence float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1 + confidence) / 2)
}

// Median returns the middle of the values, and the mean of the middle two of an even number. The values
// stay as they are; there must be at least one, and no NaN.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
