package stitch

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// bootstrap fills in the trace's intervals. It draws runs with replacement, and refits the sensors' gains, the readings'
// weights and the trace each time. The smoothness stays.
func (s *stitcher) bootstrap(ctx context.Context, c *solution, to *Trace) error {
	rng := rand.New(rand.NewPCG(s.opt.Seed, 2))
	for range s.opt.Resamples {
		if err := ctx.Err(); err != nil {
			return err
		}
		times := make([]float64, s.runs)
		for range s.runs {
			times[rng.IntN(s.runs)]++
		}
		drawn := func(run int) float64 { return times[run] }
		rows := slices.Clone(c.rows)
		divide(rows, gains(rows, c.watts, len(c.noise), drawn))
		// Two passes: fixed weights make the intervals too narrow, and noise that a few runs hide would reject all
		// readings of the others.
		p, ok := assemble(s.cells, rows, drawn).solve(c.penalty, c.lambda)
		if ok {
			reweigh(s.cells, rows, p, len(c.noise), s.floor)
			p, ok = assemble(s.cells, rows, drawn).solve(c.penalty, c.lambda)
		}
		if ok {
			s.speeds.mean(p, drawn)
			to.resamples = append(to.resamples, running(p))
		}
	}
	if len(to.resamples) < 2 {
		return fmt.Errorf("%d of %d resamples have a trace: %w", len(to.resamples), s.opt.Resamples, ErrTooFew)
	}
	to.wide = halfWidth(s.runs)
	to.Low, to.High = make([]float64, s.n), make([]float64, s.n)
	for i, w := range to.Watts {
		half := to.half(float64(i), float64(i+1))
		to.Low[i], to.High[i] = w-half, w+half
	}
	return nil
}

// halfWidth returns half a 95 % interval in standard deviations of resamples: Student's quantile, as the runs are few,
// times the correction for the spread that a bootstrap of few runs misses.
func halfWidth(runs int) float64 {
	n := float64(runs)
	return stats.Student(n-1, 0.95) * math.Sqrt(n/(n-1))
}
