package stitch

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// penaltySpread is the range of the penalty's weight in the bootstrap, in orders of magnitude up and down.
// Cross-validation determines the weight no more precisely than this.
const penaltySpread = 1

// bootstrap fills in the trace's intervals. Each resample draws runs with replacement and a weight of the penalty. It
// then fits the sensors' filter, gains and scale, the readings' weights and the trace again. The speed law is held
// fixed. If the filter and the penalty were held fixed as well, the intervals would contain only three quarters of the
// true power during a ramp.
func (s *stitcher) bootstrap(ctx context.Context, c *solution, to *Trace) error {
	rng := rand.New(rand.NewPCG(s.opt.Seed, 2))
	scale := s.counterScale(c)
	whole := scale(c.watts, gains(c.rows, c.watts, len(c.noise), once), once)
	for range s.opt.Resamples {
		if err := ctx.Err(); err != nil {
			return err
		}
		times := make([]float64, s.runs)
		for range s.runs {
			times[rng.IntN(s.runs)]++
		}
		drawn := func(run int) float64 { return times[run] }
		lambda := c.lambda * math.Pow(10, penaltySpread*(2*rng.Float64()-1))
		rows := s.drawnRows(ctx, c, drawn)
		gain := gains(rows, c.watts, len(c.noise), drawn)
		divide(rows, gain)
		// Two passes: fixed weights would make the intervals too narrow. Noise estimated from the few drawn runs could
		// reject all readings of the other runs.
		p, ok := assemble(s.cells, rows, drawn).solve(c.penalty, lambda)
		if ok {
			reweigh(s.cells, rows, p, len(c.noise), s.floor)
			p, ok = assemble(s.cells, rows, drawn).solve(c.penalty, lambda)
		}
		if ok {
			floats.Scale(scale(p, gain, drawn)/whole, p)
			s.speeds.mean(p, drawn)
			to.resamples = append(to.resamples, running(p))
		}
	}
	if len(to.resamples) < 2 {
		return fmt.Errorf("%w: only %d of %d resamples have a trace", ErrTooFew, len(to.resamples), s.opt.Resamples)
	}
	to.wide = halfWidth(s.runs)
	to.Low, to.High = make([]float64, s.n), make([]float64, s.n)
	for i, w := range to.Watts {
		half := to.half(float64(i), float64(i+1))
		to.Low[i], to.High[i] = w-half, w+half
	}
	return nil
}

// drawnRows returns the rows for the filter that the drawn runs give.
func (s *stitcher) drawnRows(ctx context.Context, c *solution, drawn func(run int) float64) []row {
	if s.filter == nil {
		return slices.Clone(c.rows)
	}
	rows := s.rows(s.filter.redrawn(ctx, c.sensors, drawn))
	weigh(s.cells, rows, c.watts, c.noise)
	return rows
}

// counterScale returns a function for the energy counter's scale in the drawn runs, relative to its fitted gain. The
// energy counter is the scale of the trace. The function takes the trace and the sensors' gains of the drawn runs.
func (s *stitcher) counterScale(c *solution) func(watts, gain []float64, drawn func(run int) float64) float64 {
	counter := s.counter()
	if counter == nil {
		return func([]float64, []float64, func(int) float64) float64 { return 1 }
	}
	if k := slices.Index(c.sensors, counter); k >= 0 {
		return func(_, gain []float64, _ func(int) float64) float64 { return gain[k] }
	}
	rows := s.rows([]*sensor{counter})
	noise := reweigh(s.cells, rows, c.watts, 1, s.floor)
	return func(watts, _ []float64, drawn func(int) float64) float64 {
		weigh(s.cells, rows, watts, noise)
		return scaleOf(rows, watts, drawn)
	}
}

// scaleOf returns the scale of rows relative to a trace.
func scaleOf(rows []row, watts []float64, times func(run int) float64) float64 {
	above, below := 0.0, 0.0
	for _, r := range rows {
		w, m := r.weight*times(r.run), r.mean(watts)
		above += w * m * r.watts
		below += w * m * m
	}
	if above > 0 && below > 0 {
		return above / below
	}
	return 1
}

// halfWidth returns half of a 95 % interval in standard deviations of the resamples. It is Student's quantile, because
// the runs are few, times a correction for the spread that a bootstrap of few runs underestimates.
func halfWidth(runs int) float64 {
	n := float64(runs)
	return stats.Student(n-1, 0.95) * math.Sqrt(n/(n-1))
}
