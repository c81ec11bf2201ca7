package stitch

import (
	"context"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// resolution sets the resolution of every cell.
func (s *stitcher) resolution(ctx context.Context, c *solution, to *Trace) error {
	to.Resolution = make([]Seconds, s.n)
	return s.eachResolution(ctx, c, func(i int, r Seconds) bool {
		to.Resolution[i] = r
		return true
	})
}

// isFine reports whether all cells from first to last have at most the resolution limit.
func (s *stitcher) isFine(ctx context.Context, c *solution, first, last int, limit Seconds) (fine bool, err error) {
	fine = true
	err = s.eachResolution(ctx, c, func(i int, r Seconds) bool {
		fine = i < first || i > last || r <= limit
		return fine && i < last
	})
	return fine, err
}

// eachResolution computes the resolution of the cells in order, until yield returns false. A row of the resolution
// matrix (AᵀWA+λL)⁻¹AᵀWA holds the weights with which the cell's value averages the true power. These weights change
// slowly away from breaks. A long trace therefore computes about a thousand rows and uses each for the following cells.
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

// nearBreak reports whether a cell is close to a break, so that its resolution must be computed.
func (s *stitcher) nearBreak(i int) bool {
	const near = 40 // cells
	return slices.ContainsFunc(s.breaks, func(b float64) bool { return math.Abs(b/s.step-float64(i)) < near })
}

// fullWidth returns the full width at half maximum of a kernel around cell i, in cells and at least 1.
func fullWidth(kernel []float64, i int) float64 {
	peak := i
	for k, v := range kernel {
		if v > kernel[peak] {
			peak = k
		}
	}
	half := kernel[peak] / 2
	// The kernel is taken to be linear between the middles of cells.
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
	// A cell whose value comes from other cells has at least the distance to those cells as its resolution.
	switch {
	case i < low:
		w += float64(low - i)
	case i > high:
		w += float64(i - high)
	}
	return max(1, w)
}

// limitResolution refits a trace so that every cell of the work has at most the resolution limit. It uses the heaviest
// penalty of the given growth for which this holds. With growth 0 all cells have about the same resolution. If no
// penalty reaches the limit, or the intervals become wider than widest, limitResolution returns the trace unchanged and
// false.
func (s *stitcher) limitResolution(ctx context.Context, c *solution, trace *Trace, limit Seconds, growth float64) (*Trace, bool, error) {
	const (
		lowest, highest, fine = -6.0, 10.0, 0.2
		widest                = 0.05 // largest half of a 95 % interval, relative to power
	)
	end := float64(s.n) * s.step // end of the work, unless a break marks it
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
		if err := s.solve(&at); err != nil { // too few readings for a penalty of this weight
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
