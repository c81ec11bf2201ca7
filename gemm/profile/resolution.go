package profile

import (
	"context"
	"math"
	"slices"
	"time"
)

// resolution fills in that of every cell: a row of the resolution matrix (AᵀWA+λL)⁻¹AᵀWA says of which cells
// the curve's value is a mean. It changes slowly but for the breaks: far from them a long curve's is found at
// a thousand cells, and holds until the next.
func (s *stitching) resolution(ctx context.Context, c *solution, to *Curve) error {
	sys := assemble(s.cells, c.rows, once)
	f, ok := sys.solver(c.bend, c.lambda)
	if !ok {
		return ErrTooFew
	}
	to.Resolution = make([]time.Duration, s.n)
	stride := 1 + s.n/1000
	for i := range s.n {
		if i%stride != 0 && !s.nearBreak(i) {
			to.Resolution[i] = to.Resolution[i-1]
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		x := make([]float64, s.n)
		x[i] = 1
		f.solve(x)
		to.Resolution[i] = seconds(s.step * width(sys.matrix.times(x), i))
	}
	return nil
}

// nearBreak says whether a cell is so near to a break that its resolution is its own.
func (s *stitching) nearBreak(i int) bool {
	const near = 40 // cells
	return slices.ContainsFunc(s.breaks, func(b float64) bool { return math.Abs(b/s.step-float64(i)) < near })
}

// width of a kernel at half its height about cell i, in cells, at least one.
func width(kernel []float64, i int) float64 {
	peak := i
	for k, v := range kernel {
		if v > kernel[peak] {
			peak = k
		}
	}
	half := kernel[peak] / 2
	// Cell k's value stands for its middle; between middles the kernel runs straight.
	edge := func(k, next int) float64 {
		if next < 0 || next >= len(kernel) {
			return 0.5
		}
		return (kernel[k] - half) / (kernel[k] - kernel[next])
	}
	low, high := peak, peak
	for low > 0 && kernel[low-1] >= half {
		low--
	}
	for high < len(kernel)-1 && kernel[high+1] >= half {
		high++
	}
	w := float64(high-low) + edge(low, low-1) + edge(high, high+1)
	// A cell whose value is made from others is no finer than they are far.
	switch {
	case i < low:
		w += float64(low - i)
	case i > high:
		w += float64(i - high)
	}
	return max(1, w)
}
