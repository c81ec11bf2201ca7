package stitch

import (
	"context"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// resolution fills in the resolution of every cell.
func (s *stitcher) resolution(ctx context.Context, c *solution, to *Trace) error {
	to.Resolution = make([]Seconds, s.n)
	return s.eachResolution(ctx, c, func(i int, r Seconds) bool {
		to.Resolution[i] = r
		return true
	})
}

// isFine reports whether no cell from one to another is coarser than a limit.
func (s *stitcher) isFine(ctx context.Context, c *solution, first, last int, limit Seconds) (fine bool, err error) {
	fine = true
	err = s.eachResolution(ctx, c, func(i int, r Seconds) bool {
		fine = i < first || i > last || r <= limit
		return fine && i < last
	})
	return fine, err
}

// eachResolution computes the resolution of one cell after the other, until yield returns false. A row of the resolution
// matrix (AᵀWA+λL)⁻¹AᵀWA holds the weights with which the cell's value averages the true power. Away from breaks it
// changes slowly, so a long trace computes some thousand rows and repeats each until the next.
func (s *stitcher) eachResolution(ctx context.Context, c *solution, yield func(i int, r Seconds) bool) error {
	sys := assemble(s.cells, c.rows, once)
	f, ok := sys.solver(c.penalty, c.lambda)
	if !ok {
		return ErrTooFew
	}
	stride := 1 + s.n/1000
	var r Seconds
	x := make([]float64, s.n)
	for i := range s.n {
		if i%stride == 0 || s.nearBreak(i) {
			if err := ctx.Err(); err != nil {
				return err
			}
			clear(x)
			x[i] = 1
			f.solve(x)
			r = Of(s.step * fullWidth(sys.matrix.times(x), i))
		}
		if !yield(i, r) {
			return nil
		}
	}
	return nil
}

// nearBreak reports whether a cell is so near to a break that its resolution must be computed.
func (s *stitcher) nearBreak(i int) bool {
	const near = 40 // cells
	return slices.ContainsFunc(s.breaks, func(b float64) bool { return math.Abs(b/s.step-float64(i)) < near })
}

// fullWidth returns the full width at half maximum of a kernel, seen from cell i: in cells, at least 1.
func fullWidth(kernel []float64, i int) float64 {
	peak := i
	for k, v := range kernel {
		if v > kernel[peak] {
			peak = k
		}
	}
	half := kernel[peak] / 2
	// The kernel is linear between the middles of cells.
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
	// A cell whose value comes from other cells is no finer than their distance.
	switch {
	case i < low:
		w += float64(low - i)
	case i > high:
		w += float64(i - high)
	}
	return max(1, w)
}

// limitResolution refits a trace with the heaviest penalty of the given growth at which every cell of the work is as fine
// as the limit. With growth 0 all cells are about equally fine. It returns the trace unchanged, and false, where the
// readings do not carry the limit: no penalty reaches it, or the intervals become too wide to show anything.
func (s *stitcher) limitResolution(ctx context.Context, c *solution, trace *Trace, limit Seconds, growth float64) (*Trace, bool, error) {
	const (
		lowest, highest, fine = -6.0, 10.0, 0.2
		widest                = 0.05 // half a 95 % interval, relative to power
	)
	end := float64(s.n) * s.step // of the work, unless a break marks it
	if n := len(s.breaks); n > 1 {
		end = s.breaks[n-1]
	}
	work, at := s.cells.spanOf(s.breaks[0], end, 0), *c
	if slices.Max(trace.Resolution[work.first:work.last()+1]) <= limit {
		return trace, true, nil
	}
	at.growth = growth
	reached := func(order float64) (bool, error) {
		at.order = order
		if err := s.solve(&at); err != nil { // too few readings for so light a penalty
			return false, nil
		}
		return s.isFine(ctx, &at, work.first, work.last(), limit)
	}
	low, high := lowest, highest
	if ok, err := reached(low); !ok || err != nil {
		return trace, false, err
	}
	for high-low > fine {
		ok, err := reached((low + high) / 2)
		if err != nil {
			return nil, false, err
		}
		if ok {
			low = (low + high) / 2
		} else {
			high = (low + high) / 2
		}
	}
	at.order = low
	if err := s.solve(&at); err != nil {
		return nil, false, err
	}
	refitted, err := s.trace(ctx, &at)
	if err != nil {
		return nil, false, err
	}
	var half []float64
	for i := work.first; i <= work.last(); i++ {
		half = append(half, (refitted.High[i]-refitted.Low[i])/2/math.Abs(refitted.Watts[i]))
	}
	if stats.Median(half) > widest {
		return trace, false, nil
	}
	*c = at
	return refitted, true, nil
}
