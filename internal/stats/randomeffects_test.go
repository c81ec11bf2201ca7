package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// TestBetween checks the example of Kacker (Metrologia 41, 2004, 132), Table 1, first row: 0.8399 by the method of
// Paule and Mandel.
func TestBetween(t *testing.T) {
	values := []float64{61.00, 61.40, 62.21, 62.30, 62.34, 62.60, 62.70, 62.84, 65.90}
	variances := []float64{0.2025, 1.2100, 0.0900, 0.2025, 0.3844, 0.5625, 0.0676, 0.0225, 1.8225}
	var members []stats.Estimate
	for i, v := range values {
		members = append(members, stats.Estimate{Value: v, Error: math.Sqrt(variances[i])})
	}
	if got := stats.Between(members); math.Abs(got-0.8399) > 6e-5 {
		t.Errorf("%v, want 0.8399", got)
	}
	shifted := make([]stats.Estimate, len(members))
	for i, m := range members {
		shifted[i] = stats.Estimate{Value: m.Value + 1000, Error: m.Error}
	}
	if got := stats.Between(members, shifted, members[:1]); math.Abs(got-0.8399) > 6e-5 {
		t.Errorf("two groups of the same members with different means, and a single member: %v, want 0.8399", got)
	}
}

// TestCombineEqualErrors: members with equal errors give the plain mean and Student's intervals. Their errors are a
// part of the scatter.
func TestCombineEqualErrors(t *testing.T) {
	const e = 0.5
	got := stats.Combine([]stats.Estimate{{1, e}, {2, e}, {3, e}, {4, e}, {5, e}}) // variance 2.5
	deviation := math.Sqrt(2.5 / 5)
	next := math.Sqrt(2.5+2.5/5) * stats.Student(4, 0.95)
	half := stats.Student(4, 0.95) * deviation
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean", got.Mean, 3}, {"error", got.Error, deviation}, {"between", got.Between, math.Sqrt(2.5 - e*e)},
		{"low end", got.Interval[0], 3 - half}, {"high end", got.Interval[1], 3 + half},
		{"next, low end", got.Next[0], 3 - next}, {"next, high end", got.Next[1], 3 + next},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestCombineFixedEffect: members that differ by less than their errors give the fixed effect's mean, and an interval
// at least as wide as its error.
func TestCombineFixedEffect(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		members := make([]stats.Estimate, 2+rng.IntN(8))
		var mean, weights float64
		for i := range members {
			e := 0.5 + rng.Float64()
			members[i] = stats.Estimate{Value: 7 + 0.3*e*(2*rng.Float64()-1), Error: e}
			mean, weights = mean+members[i].Value/e/e, weights+1/e/e
		}
		got := stats.Combine(members)
		if got.Between != 0 || math.Abs(got.Mean-mean/weights) > 1e-12 || math.Abs(got.Error-1/math.Sqrt(weights)) > 1e-12 {
			t.Fatalf("%v: mean %v ± %v, between %v, want %v ± %v and 0", members, got.Mean, got.Error, got.Between, mean/weights, 1/math.Sqrt(weights))
		}
	}
}

// TestCombineFew: one member has no intervals.
func TestCombineFew(t *testing.T) {
	one := stats.Combine([]stats.Estimate{{3, 0.2}})
	if one.Mean != 3 || one.Error != 0.2 || one.Between != 0 || one.Interval != nil || one.Next != nil {
		t.Errorf("one member: %+v", one)
	}
	if two := stats.Combine([]stats.Estimate{{3, 0.2}, {4, 0.2}}); two.Interval == nil || two.Next == nil {
		t.Errorf("two members: %+v", two)
	}
}

// TestCombineCoverage draws members of normal populations. At least 93 % of the intervals must contain the mean and a
// further member, for any share of the errors in the scatter.
func TestCombineCoverage(t *testing.T) {
	const runs = 2000
	rng := rand.New(rand.NewPCG(2, 0))
	for _, n := range []int{2, 3, 5, 15} {
		for _, between := range []float64{0, 0.5, 1, 4} {
			var mean, next float64
			for range runs {
				members := make([]stats.Estimate, n)
				for i := range members {
					e := 0.5 + rng.Float64()
					members[i] = stats.Estimate{Value: between*rng.NormFloat64() + e*rng.NormFloat64(), Error: e}
				}
				r := stats.Combine(members)
				if r.Interval[0] <= 0 && 0 <= r.Interval[1] {
					mean += 1. / runs
				}
				if v := between * rng.NormFloat64(); r.Next[0] <= v && v <= r.Next[1] {
					next += 1. / runs
				}
			}
			if mean < 0.93 || next < 0.93 {
				t.Errorf("%d members, %v between them: the intervals hold %.3f of the means and %.3f of further members", n, between, mean, next)
			}
			t.Logf("%d members, %v between them: %.3f, %.3f", n, between, mean, next)
		}
	}
}
