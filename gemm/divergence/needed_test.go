package divergence_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/divergence"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

// TestNeededIsStudents takes a deviation of 1 over three sequences, and Student's quantiles from a
// table.
func TestNeededIsStudents(t *testing.T) {
	half := 4.302653 / math.Sqrt(3)
	observed := forward.Comparison{Difference: 0.5, Low: 0.5 - half, High: 0.5 + half}
	nine, ten := 2.262157/math.Sqrt(10), 2.228139/math.Sqrt(11) // over ten and eleven sequences
	for _, test := range []struct {
		budget float64
		want   int
	}{
		{nine * 1.0001, 10},
		{nine * 0.9999, 11},
		{ten * 1.0001, 11},
		{ten * 0.9999, 12},
		{100, 2},
		{1.959964e-3, 1_000_003}, // nearly normal: for which it were a million
		{1e-300, 1 << 30},
	} {
		got, err := divergence.Needed(observed, 3, test.budget)
		if err != nil || math.Abs(float64(got-test.want)) > 1e-5*float64(test.want) {
			t.Errorf("budget %v: %d, %v, want %d", test.budget, got, err, test.want)
		}
	}
	if got, err := divergence.Needed(forward.Comparison{}, 5, 1e-9); err != nil || got != 2 {
		t.Errorf("without any spread: %d, %v, want 2", got, err)
	}
}

// TestNeededIsOfComparisons: the width of an observed interval needs the observed number of sequences.
func TestNeededIsOfComparisons(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{2, 3, 8, 500} {
		before, after := &forward.Scores{}, &forward.Scores{}
		for range n {
			b := []float64{r.ExpFloat64(), r.ExpFloat64()}
			before.Nats = append(before.Nats, b)
			after.Nats = append(after.Nats, []float64{b[0] + r.NormFloat64(), b[1]})
		}
		c, err := forward.Compare(before, after)
		if err != nil {
			t.Fatal(err)
		}
		half := (c.High - c.Low) / 2
		enough, err := divergence.Needed(c, n, half*1.0001)
		if err != nil || enough != n {
			t.Errorf("%d sequences: %d, %v for what they give", n, enough, err)
		}
		more, err := divergence.Needed(c, n, half*0.9999)
		if err != nil || more != n+1 {
			t.Errorf("%d sequences: %d, %v for a little less, want one more", n, more, err)
		}
	}
}

func TestNeededTakesTwoSequences(t *testing.T) {
	inf := math.Inf(1)
	fine := forward.Comparison{Low: -1, High: 1}
	for _, test := range []struct {
		observed  forward.Comparison
		sequences int
		budget    float64
		want      string
	}{
		{fine, 1, 0.1, "at least two"},
		{forward.Comparison{Low: -inf, High: inf}, 2, 0.1, "at least two"},
		{forward.Comparison{Low: math.NaN(), High: 1}, 2, 0.1, "at least two"},
		{fine, 2, 0, "above 0"},
		{fine, 2, math.NaN(), "above 0"},
	} {
		if n, err := divergence.Needed(test.observed, test.sequences, test.budget); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %d, %v, want an error with %q", test, n, err, test.want)
		}
	}
}
