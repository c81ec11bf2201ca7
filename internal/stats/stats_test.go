package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// TestStudent compares quantiles with printed tables.
func TestStudent(t *testing.T) {
	for _, test := range []struct{ freedom, confidence, want float64 }{
		{1, 0.95, 12.706}, {2, 0.95, 4.303}, {7, 0.95, 2.365}, {30, 0.95, 2.042}, {10, 0.99, 3.169}, {1e6, 0.95, 1.960},
	} {
		if got := stats.Student(test.freedom, test.confidence); math.Abs(got-test.want) > 6e-4 {
			t.Errorf("%v degrees of freedom, %v: %v, want %v", test.freedom, test.confidence, got, test.want)
		}
	}
}

// TestMedian: odd and even numbers of values, in any order. The values do not change.
func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3}, {[]float64{5, 1}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}, {[]float64{math.Inf(1), 0, 7}, 7},
	} {
		before := slices.Clone(test.values)
		if got := stats.Median(test.values); got != test.want {
			t.Errorf("%v: %v, want %v", before, got, test.want)
		}
		if !slices.Equal(test.values, before) {
			t.Errorf("%v became %v", before, test.values)
		}
	}
}
