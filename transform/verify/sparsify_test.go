package verify

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRunsAreTheCheapest: the found runs have the lowest possible cost.
func TestRunsAreTheCheapest(t *testing.T) {
	cost := func(values []float32, zero func(k int) bool, worth float64) (sum float64) {
		for k, v := range values {
			if zero(k) {
				sum += float64(v)*float64(v) - worth
			}
			if k > 0 && zero(k) != zero(k-1) {
				sum += 2 * worth
			}
		}
		return sum
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float32Range(-4, 4), 1, 10).Draw(t, "values")
		worth := rapid.Float64Range(0.01, 8).Draw(t, "worth")
		s := newZeroing(&Zeros{Runs: worth}, 1, len(values), 0)
		zero := s.row(0, func(dst []float32, _ int) { copy(dst, values) })
		best := math.Inf(1)
		for mask := range 1 << len(values) {
			best = min(best, cost(values, func(k int) bool { return mask>>k&1 == 1 }, worth))
		}
		if got := cost(values, func(k int) bool { return zero[k] }, worth); math.Abs(got-best) > 1e-9 {
			t.Fatalf("cost %g, the best is %g", got, best)
		}
	})
}

func TestOfEqualsTheLaterAreZeroed(t *testing.T) {
	s := newZeroing(&Zeros{Pattern: "2:4"}, 1, 9, 0)
	got := s.row(0, func(dst []float32, _ int) { copy(dst, []float32{1, -1, 1, 1, 0, float32(math.Inf(1)), 0, 0, 0}) })
	if want := []bool{2: true, 3: true, 8: false}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestTiesKeepValues: of equally cheap runs, the one that keeps values is chosen, at the end of a row and before a large value.
func TestTiesKeepValues(t *testing.T) {
	for _, values := range [][]float32{{1}, {0, 0, 9}, {9, 0, 0, 9}, {9, 0, 0, 0, 0, 9}} {
		s := newZeroing(&Zeros{Runs: 1}, 1, len(values), 0)
		if zero := s.row(0, func(dst []float32, _ int) { copy(dst, values) }); slices.Contains(zero, true) {
			t.Errorf("%v: zeros %v", values, zero)
		}
	}
}
