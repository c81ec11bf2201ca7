package measure

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestMostMisses: by the binomial distribution, the number is exceeded in at most one run of twenty.
func TestMostMisses(t *testing.T) {
	for n := 1; n <= 60; n++ {
		most := MostMisses(n)
		within, p := 0.0, 1.0 // of at most so many misses; of exactly so many
		for range n {
			p *= 0.95
		}
		for k := range most + 1 {
			if k == most && within >= 0.95+1e-12 {
				t.Errorf("%d of %d are more than need be", most, n)
			}
			within += p
			p *= float64(n-k) / float64(k+1) * 0.05 / 0.95
		}
		if within < 0.95-1e-12 {
			t.Errorf("%d of %d are exceeded in %.1f %% of runs", most, n, 100*(1-within))
		}
	}
}

// TestAgainst: chance explains only missed null comparisons, and none of a single run.
func TestAgainst(t *testing.T) {
	result := func(low, high float64, reasons ...string) *Result {
		return &Result{Result: &power.Result{Null: power.Comparison{Interval: []float64{low, high}}, Header: power.Header{Invalid: reasons, Valid: reasons == nil}}}
	}
	good, missed, hot := result(0.99, 1.01), result(1.001, 1.01, "it misses"), result(1.001, 1.01, "it misses", "heat")
	slow := result(0.99, 1.01, "slow")
	none := result(0, 0, "no block")
	none.Null.Interval = nil
	for _, c := range []struct {
		results []*Result
		want    []string
	}{
		{[]*Result{good}, nil},
		{[]*Result{missed}, []string{"a: it misses"}},
		{[]*Result{good, missed}, nil},
		{[]*Result{missed, missed}, []string{"a: it misses", "b: it misses"}},
		{[]*Result{missed, hot}, []string{"b: it misses", "b: heat"}},
		{[]*Result{good, slow, none}, []string{"b: slow", "c: no block"}},
	} {
		if have := InvalidReasons([]string{"a", "b", "c"}, c.results); !slices.Equal(have, c.want) {
			t.Errorf("%q, want %q", have, c.want)
		}
	}
}
