package forward

import (
	"errors"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Scores are the losses of predicted tokens.
type Scores struct {
	// Nats has for each sequence the loss of every token but its first, in nats.
	Nats [][]float64
}

// Loss is the mean over all predicted tokens, in nats.
func (s *Scores) Loss() float64 {
	total, n := 0.0, 0
	for _, nats := range s.Nats {
		total += total64(nats)
		n += len(nats)
	}
	return total / float64(n)
}

// Perplexity is e to the loss.
func (s *Scores) Perplexity() float64 { return math.Exp(s.Loss()) }

// Sequences has the mean of each sequence, in nats.
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

// Comparison is how much a loss rose.
type Comparison struct {
	// Difference is the mean loss after less that before, in nats; Low and High are the ends of its
	// 95 % interval, Student's over the sequences' differences. A single sequence gives none: they
	// are infinite.
	Difference, Low, High float64
}

// PerplexityRatio is the perplexity after over that before, with the ends of its interval.
func (c Comparison) PerplexityRatio() (ratio, low, high float64) {
	return math.Exp(c.Difference), math.Exp(c.Low), math.Exp(c.High)
}

// Compare holds the losses of the same tokens against each other. It fails where the sequences are
// not equally many and equally long.
func Compare(before, after *Scores) (Comparison, error) {
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
	// The mean is a ratio of sums over sequences: its spread is that of what each adds to the rise
	// over what its length lets expect.
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
