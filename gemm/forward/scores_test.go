package forward_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
)

func TestMeans(t *testing.T) {
	s := &forward.Scores{Nats: [][]float64{{1, 2, 3}, {6}}}
	if s.Loss() != 3 || s.Perplexity() != math.Exp(3) {
		t.Errorf("loss %v, perplexity %v, want 3 and e³", s.Loss(), s.Perplexity())
	}
	if m := s.Sequences(); len(m) != 2 || m[0] != 2 || m[1] != 6 {
		t.Errorf("means of sequences %v, want 2 and 6", m)
	}
}

// TestIntervalIsStudents: for sequences of equal lengths, the interval is Student's for the mean of their differences.
func TestIntervalIsStudents(t *testing.T) {
	before := &forward.Scores{Nats: [][]float64{{1, 5}, {2, 2}, {0, 4}}}
	after := &forward.Scores{Nats: [][]float64{{2, 5}, {2, 6}, {1, 9}}}
	mean, dev := stat.MeanStdDev([]float64{0.5, 2, 3}, nil)
	half := 4.302652729911275 * dev / math.Sqrt(3) // the quantile for 2 degrees of freedom, from a table
	c, err := forward.Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]float64{"difference": {c.Difference, mean}, "low": {c.Low, mean - half}, "high": {c.High, mean + half}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	ratio, low, high := c.PerplexityRatio()
	if math.Abs(ratio*before.Perplexity()-after.Perplexity()) > 1e-9*after.Perplexity() || low != math.Exp(c.Low) || high != math.Exp(c.High) {
		t.Errorf("perplexity ratio %v (%v to %v), perplexities %v and %v", ratio, low, high, before.Perplexity(), after.Perplexity())
	}
}

// TestIntervalsAreHonest draws differences of sequences of unequal lengths: 95 % of the intervals contain the true mean.
func TestIntervalsAreHonest(t *testing.T) {
	const truth, trials = 0.01, 2000
	r := rand.New(rand.NewPCG(1, 1))
	held := 0
	for range trials {
		before, after := &forward.Scores{}, &forward.Scores{}
		for range 24 {
			n, shift := 20+r.IntN(20), 0.02*r.NormFloat64() // the part that a sequence's tokens share
			b, a := make([]float64, n), make([]float64, n)
			for i := range b {
				b[i] = r.ExpFloat64()
				a[i] = b[i] + truth + shift + 0.05*r.NormFloat64()
			}
			before.Nats, after.Nats = append(before.Nats, b), append(after.Nats, a)
		}
		c, err := forward.Compare(before, after)
		if err != nil {
			t.Fatal(err)
		}
		if c.Low <= truth && truth <= c.High {
			held++
		}
	}
	if share := float64(held) / trials; share < 0.935 || share > 0.965 {
		t.Errorf("%.1f %% of intervals hold the truth, want 95", 100*share)
	}
}

func TestComparisonNeedsTheSameTokens(t *testing.T) {
	one := &forward.Scores{Nats: [][]float64{{1, 2}}}
	for _, other := range []*forward.Scores{{}, {Nats: [][]float64{{1}}}, {Nats: [][]float64{{1, 2}, {1}}}} {
		if _, err := forward.Compare(one, other); err == nil {
			t.Errorf("%v was compared with %v", one, other)
		}
	}
	c, err := forward.Compare(one, &forward.Scores{Nats: [][]float64{{2, 3}}})
	if err != nil || c.Difference != 1 || !math.IsInf(c.Low, -1) || !math.IsInf(c.High, 1) {
		t.Errorf("a single sequence: %+v, %v, want a difference of 1 and no bounds", c, err)
	}
}
