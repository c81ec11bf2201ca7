package profile

import (
	"context"
	"fmt"
	"math"
)

// solution is a curve and how it was found.
type solution struct {
	watts []float64
	smoothness
	lambda float64
	bend   *normal
	rows   []row
	noise  []noise // of each source
}

// assumed is where the search for the smoothness begins.
var assumed = smoothness{growth: 4}

// growths of the penalty that are tried: see roughness.
var growths = []float64{4, 2, 0}

// fit finds the curve of some sources, and by turns what each reading weighs and, where growths are to be
// tried, the smoothness.
func (s *stitching) fit(ctx context.Context, sources []*source, about smoothness, try ...float64) (*solution, error) {
	const rounds = 3
	c := &solution{rows: s.rows(sources), smoothness: about}
	if err := ctx.Err(); err != nil { // of a million readings rows take a while
		return nil, err
	}
	if err := s.solve(c); err != nil {
		return nil, err
	}
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.noise = reweigh(s.cells, c.rows, c.watts, len(sources), s.floor)
		level := levels(c.rows, c.watts, len(sources), once)
		for k, src := range sources {
			src.Gain *= level[k]
		}
		divide(c.rows, level)
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

// finer is by how many orders of magnitude the penalty weighs less than the one that cross-validation takes. What smoothing
// takes from a curve no bootstrap shows, so the intervals are true only where it takes little.
const finer = 1

// solve finds the curve that its rows' weights and its smoothness make.
func (s *stitching) solve(c *solution) error {
	sys := assemble(s.cells, c.rows, once)
	c.lambda = sys.scale() * math.Pow(10, c.order-finer)
	c.bend = roughness(s.cells, s.breaks, c.growth)
	p, ok := sys.solve(c.bend, c.lambda)
	if !ok {
		return fmt.Errorf("%d readings make no curve: %w", len(c.rows), ErrTooFew)
	}
	c.watts = p
	return nil
}
