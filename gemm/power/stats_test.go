package power

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

func TestFewBlocks(t *testing.T) {
	if r := ratioOf(nil, 1); r.value != 0 || r.interval != nil {
		t.Errorf("no blocks: %+v", r)
	}
	if r := ratioOf([]float64{0.01}, 1); r.interval != nil || r.value != math.Exp(0.01) {
		t.Errorf("one block: %+v", r)
	}
	// Two values ±d about 0: a half width of 12.706·d.
	r := ratioOf([]float64{-0.001, 0.001}, 1)
	near(t, "two blocks", math.Log(r.interval[1]), 0.012706, 1e-3)
}

// TestIntervalsAreHonest: 95 % of the intervals of normal blocks contain the truth, for any number of blocks.
func TestIntervalsAreHonest(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	const runs = 1500
	for _, n := range []int{2, 5, enoughPasses, 12, 20} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		missed := 0
		for run := range uint64(runs) {
			logs := make([]float64, n)
			for i := range logs {
				logs[i] = 0.01 + 0.004*rng.NormFloat64()
			}
			missed += count(!contains(ratioOf(logs, run).interval, math.Exp(0.01)))
		}
		if share := float64(missed) / runs; share < 0.035 || share > 0.068 {
			t.Errorf("%d blocks: %v of intervals miss the truth, want 0.05", n, share)
		}
	}
}

// TestRatioLaws: the mean is in the interval; before/after is the inverse of after/before; a constant factor scales
// everything; equal blocks have an interval of no width.
func TestRatioLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logs := rapid.SliceOfN(rapid.Float64Range(-0.1, 0.1), 2, 16).Draw(t, "logs")
		shift := rapid.Float64Range(-1, 1).Draw(t, "shift")
		moved, same := make([]float64, len(logs)), make([]float64, len(logs))
		for i, v := range logs {
			moved[i], same[i] = v+shift, shift
		}
		r, m := ratioOf(logs, 7), ratioOf(moved, 7)
		if r.value < r.interval[0]-1e-12 || r.value > r.interval[1]+1e-12 {
			t.Fatalf("%v outside %v", r.value, r.interval)
		}
		for i, v := range r.interval {
			if math.Abs(m.interval[i]/(v*math.Exp(shift))-1) > 1e-9 {
				t.Fatalf("shift by %v: %v became %v", shift, r.interval, m.interval)
			}
		}
		if w := halfWidth(ratioOf(same, 7).interval); w > 1e-9 {
			t.Fatalf("width %v of equal blocks", w)
		}
	})
}

func TestMetrics(t *testing.T) {
	near(t, "EDP", EDP(0.9, 1.1), 0.99, 1e-12)
	if EDS(1, 1, 3) != 1 {
		t.Error("the reference's EDS is not 1")
	}
	// k is the factor of time at which all energy saved is just worth it.
	near(t, "EDS", EDS(0, 3, 3), 1, 1e-12)
	near(t, "EDS", EDS(0.9, 1.05, 2), 0.975, 1e-12)
	near(t, "gain", GainMinusLoss(0.9, 1.04), 0.06, 1e-9)
}

// TestRatioOfGroups: the mean is the mean of the groups' means, and the interval Student's from the spread within groups, by hand:
// squares of 0.0002 with one degree of freedom, and a variance of the mean of (1/2 + 1/1)/4 of that.
func TestRatioOfGroups(t *testing.T) {
	r := ratioOfGroups(map[int][]float64{4: {0.01, 0.03}, 7: {0.05}}, 1)
	half := 12.7062047 * math.Sqrt(0.0002*0.375)
	near(t, "mean", math.Log(r.value), 0.035, 1e-9)
	near(t, "low end", math.Log(r.interval[0]), 0.035-half, 1e-6)
	near(t, "high end", math.Log(r.interval[1]), 0.035+half, 1e-6)
	if r := ratioOfGroups(map[int][]float64{0: {0.01}, 1: {0.03}}, 1); r.interval != nil || math.Abs(r.value-math.Exp(0.02)) > 1e-12 {
		t.Errorf("groups of one value, whose spread is unknown: %+v", r)
	}
	logs := []float64{-0.01, 0.02, 0.04}
	if one, plain := ratioOfGroups(map[int][]float64{3: logs}, 1), ratioOf(logs, 1); one.value != plain.value || !slices.Equal(one.interval, plain.interval) {
		t.Errorf("one group: %+v, want %+v", one, plain)
	}
	if r := ratioOfGroups(nil, 1); r.value != 0 || r.interval != nil {
		t.Errorf("no group: %+v", r)
	}
}

// TestBootstrapOfFewIsStudents: for normal values the interval is as wide as Student's, even for the fewest values.
func TestBootstrapOfFewIsStudents(t *testing.T) {
	for _, n := range []int{enoughPasses, 20} {
		values := make([]float64, n)
		for i := range values { // the quantiles of the normal distribution
			values[i] = 0.3 + distuv.UnitNormal.Quantile((float64(i)+0.5)/float64(n))
		}
		mean, dev := stat.MeanStdDev(values, nil)
		half := stats.Student(float64(n-1), confidence) * dev / math.Sqrt(float64(n))
		var low, high float64
		const seeds = 30
		for seed := range uint64(seeds) {
			l, h := bootstrap(values, seed)
			low, high = low+l/seeds, high+h/seeds
		}
		near(t, "low end", mean-low, half, 0.025)
		near(t, "high end", high-mean, half, 0.025)
	}
	seven, eight := make([]float64, 7), make([]float64, 8)
	for i := range eight {
		v := 0.001 * float64(i%3)
		eight[i] = v
		if i < 7 {
			seven[i] = v
		}
	}
	mean, dev := stat.MeanStdDev(seven, nil)
	half := stats.Student(6, confidence) * dev / math.Sqrt(7)
	r := ratioOf(seven, 1)
	near(t, "seven passes, low", math.Log(r.interval[0]), mean-half, 1e-9)
	near(t, "seven passes, high", math.Log(r.interval[1]), mean+half, 1e-9)
	low, high := bootstrap(eight, 1)
	if r := ratioOf(eight, 1); r.interval[0] != math.Exp(low) || r.interval[1] != math.Exp(high) {
		t.Errorf("eight passes: %v, want the bootstrap's", r.interval)
	}
}
