package profile

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// bootstrap fills in the curve's intervals: runs are drawn with replacement, and each time the sensors' levels,
// the readings' weights and the curve are found; the smoothness stays.
func (s *stitching) bootstrap(ctx context.Context, c *solution, to *Curve) error {
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
		divide(rows, levels(rows, c.watts, len(c.noise), drawn))
		// The second time by the noise and the weights that follow from the first: fixed ones make intervals too
		// narrow, and noise that few runs hid would leave no reading of others any weight.
		p, ok := assemble(s.cells, rows, drawn).solve(c.bend, c.lambda)
		if ok {
			reweigh(s.cells, rows, p, len(c.noise), s.floor)
			p, ok = assemble(s.cells, rows, drawn).solve(c.bend, c.lambda)
		}
		if ok {
			s.pacing.mean(p, drawn)
			to.resamples = append(to.resamples, running(p))
		}
	}
	if len(to.resamples) < 2 {
		return fmt.Errorf("%d of %d resamples have a curve: %w", len(to.resamples), s.opt.Resamples, ErrTooFew)
	}
	to.wide = widening(s.runs)
	to.Low, to.High = make([]float64, s.n), make([]float64, s.n)
	for i, w := range to.Watts {
		half := to.half(float64(i), float64(i+1))
		to.Low[i], to.High[i] = w-half, w+half
	}
	return nil
}

// widening is what standard deviations of resamples are multiplied by for half a 95 % interval: Student's
// quantile, as the runs are few, over the share of the spread that resamples of few show.
func widening(runs int) float64 {
	n := float64(runs)
	return stats.Student(n-1, 0.95) * math.Sqrt(n/(n-1))
}
