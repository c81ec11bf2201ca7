package forward

import (
	"errors"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Scores are the losses of predicted tokens.
type Scores struct {
	// Nats has the loss of every token but the first of each sequence, in nats.
	Nats [][]float64
}

// Loss returns the mean over all predicted tokens, in nats.
func (s *Scores) Loss() float64 {
	total, n := 0.0, 0
	for _, nats := range s.Nats {
		total += total64(nats)
		n += len(nats)
	}
	return total / float64(n)
}

// Perplexity returns e to the power of Loss.
func (s *Scores) Perplexity() float64 { return elementary.Exp(s.Loss()) }

// Sequences returns the mean loss of each sequence, in nats.
func (s *Scores) Sequences() []float64 {
	means := make([]float64, len(s.Nats))
	for i, nats := range s.Nats {
		means[i] = total64(nats) / float64(len(nats))
	}
	return means
}

func total64(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// Comparison is the increase of the loss from one set of weights to another.
type Comparison struct {
	// Difference is the mean loss after minus the mean loss before, in nats. Low and High are the ends of its 95 %
	// interval, from Student's distribution of the sequences' differences. Both are infinite for a single sequence.
	Difference, Low, High float64
}

// PerplexityRatio returns the perplexity after divided by the perplexity before, with the ends of its interval.
func (c Comparison) PerplexityRatio() (ratio, low, high float64) {
	return elementary.Exp(c.Difference), elementary.Exp(c.Low), elementary.Exp(c.High)
}

// Compare compares the losses of the same tokens with two sets of weights. It returns an error if the numbers or
// lengths of the sequences differ.
func Compare(before, after *Scores) (Comparison, error) {
	if before == nil || after == nil {
		return Comparison{}, errors.New("a comparison needs two losses")
	}
	n := len(before.Nats)
	if n == 0 || len(after.Nats) != n {
		return Comparison{}, errDifferent
	}
	rise, length, tokens := make([]float64, n), make([]float64, n), 0.0
	for i, b := range before.Nats {
		a := after.Nats[i]
		if len(a) != len(b) {
			return Comparison{}, errDifferent
		}
		rise[i], length[i] = total64(a)-total64(b), float64(len(b))
		tokens += length[i]
	}
	c := Comparison{Difference: total64(rise) / tokens}
	if n == 1 {
		c.Low, c.High = math.Inf(-1), math.Inf(1)
		return c, nil
	}
	// The mean is a ratio of sums over sequences. Its variance comes from the differences between each sequence's
	// increase and the increase expected from its length.
	squares := 0.0
	for i := range rise {
		squares += square(rise[i] - float64(c.Difference*length[i]))
	}
	t := stats.Student(float64(n-1), 0.95)
	half := t * math.Sqrt(squares*float64(n)/float64(n-1)) / tokens
	c.Low, c.High = c.Difference-half, c.Difference+half
	return c, nil
}

var errDifferent = errors.New("losses of different tokens cannot be compared: score the same sequences with both weights")
