package stitch

import (
	"context"
	"fmt"
	"math"
)

// solution is a fitted trace with the rows, sensors and parameters of the fit.
type solution struct {
	watts []float64
	smoothness
	lambda  float64 // weight of the penalty
	penalty *banded
	sensors []*sensor
	rows    []row
	noise   []noise // noise of each sensor
}

// initialSmoothness is the start of the search for the smoothness.
var initialSmoothness = smoothness{growth: 4}

// growths are the growth exponents of the penalty that are tried; see roughness.
var growths = []float64{4, 2, 0}

// fit solves for the trace of some sensors. It alternates between the trace, the readings' weights, the sensors' gains
// and, if try is not empty, the smoothness for the growths in try.
func (s *stitcher) fit(ctx context.Context, sensors []*sensor, start smoothness, try ...float64) (*solution, error) {
	const rounds = 3
	c := &solution{sensors: sensors, rows: s.rows(sensors), smoothness: start}
	if err := ctx.Err(); err != nil { // building the rows of a million readings takes a while
		return nil, err
	}
	if err := s.solve(c); err != nil {
		return nil, err
	}
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.noise = reweigh(s.cells, c.rows, c.watts, len(sensors), s.floor)
		gain := gains(c.rows, c.watts, len(sensors), once)
		for k, sen := range sensors {
			sen.Gain *= gain[k]
		}
		divide(c.rows, gain)
		if len(try) > 0 && round != 1 {
			v, err := newCrossValidation(ctx, s.cells, s.breaks, c.rows, s.runs, s.opt.Seed)
			if err != nil {
				return nil, err
			}
			if c.smoothness, err = v.best(ctx, try, c.order); err != nil {
				return nil, err
			}
			try = []float64{c.growth}
		}
		if err := s.solve(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// undersmoothing is by how many orders of magnitude the penalty's weight is reduced from the choice of
// cross-validation. The bootstrap does not show the bias of smoothing, so the intervals are correct only if that bias
// is small.
const undersmoothing = 1

// solve computes the trace from the rows' weights and the smoothness.
func (s *stitcher) solve(c *solution) error {
	sys := assemble(s.cells, c.rows, once)
	c.lambda = sys.scale() * math.Pow(10, c.order-undersmoothing)
	c.penalty = roughness(s.cells, s.breaks, c.growth)
	p, ok := sys.solve(c.penalty, c.lambda)
	if !ok {
		return fmt.Errorf("%w: %d readings do not determine a trace", ErrTooFew, len(c.rows))
	}
	c.watts = p
	return nil
}

// gains returns each sensor's scale relative to the first sensor's scale. They are fitted to the residuals of all rows
// about a trace.
func gains(rows []row, watts []float64, sensors int, times func(run int) float64) []float64 {
	above, below := make([]float64, sensors), make([]float64, sensors)
	for _, r := range rows {
		w, m := r.weight*times(r.run), r.mean(watts)
		above[r.sensor] += w * m * r.watts
		below[r.sensor] += w * m * m
	}
	gain := make([]float64, sensors)
	for k := range gain {
		if gain[k] = above[k] / below[k] * below[0] / above[0]; !(gain[k] > 0) || math.IsInf(gain[k], 0) {
			gain[k] = 1
		}
	}
	return gain
}

// divide divides the rows by their sensors' gains.
func divide(rows []row, gain []float64) {
	for i := range rows {
		rows[i].watts /= gain[rows[i].sensor]
	}
}
