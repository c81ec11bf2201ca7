package stitch

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"
)

// Runs differ: the card lowers its clock slightly earlier in one run than in another, and power falls with the clock.
// The time stamps give the speed of every run at every moment. One law relates power to speed, and the differences
// between runs at the same moment determine it. The readings are therefore combined into the power at the mean speed,
// which changes slowly. The power of a run is this power times the law's factor for the run's speed. In addition, each
// run has its own power level, because a warm die has more leakage.

// SpeedLaw relates power to speed. If executions are exp(x) times as fast as usual, power is multiplied by
// exp(Exponent·x + Curvature·x²). A card that lowers only its clock has an exponent of at most 1. A card that also
// lowers its voltage has an exponent of up to 3.
type SpeedLaw struct {
	Exponent  float64 `json:"order"`
	Curvature float64 `json:"bend"`
}

func (l SpeedLaw) factor(x float64) float64 { return math.Exp((l.Exponent + l.Curvature*x) * x) }

// speeds holds each run's relative speed, and its power relative to the power at the mean speed. A nil *speeds means
// that the speeds are unknown.
type speeds struct {
	law    SpeedLaw
	level  []float64   // relative power of each run while the card works; the mean over runs is 1
	works  []bool      // whether the card works, for each cell
	log    [][]float64 // logarithm of the relative speed, for each run and cell
	factor [][]float64 // relative power from the law, for each run and cell
}

// readSpeeds reads the runs' speeds from the options; nil if they are unknown.
func (s *stitcher) readSpeeds(ctx context.Context) (*speeds, error) {
	if s.opt.Speed == nil || len(s.breaks) < 2 {
		return nil, nil
	}
	v := &speeds{log: make([][]float64, s.runs), level: make([]float64, s.runs), works: make([]bool, s.n)}
	begin, end := s.breaks[0], s.breaks[len(s.breaks)-1]
	for run, number := range s.number {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v.log[number], v.level[number] = make([]float64, s.n), 1
		for i := range s.n {
			from, to := max(begin, float64(i)*s.step), min(end, float64(i+1)*s.step)
			if to-from < s.step/10 { // the cell contains hardly any work
				continue
			}
			v.works[i] = true
			if x := math.Log(s.opt.Speed(run, s.from+Of(from), s.from+Of(to))); !math.IsNaN(x) && !math.IsInf(x, 0) {
				v.log[number][i] = x
			}
		}
	}
	v.apply(SpeedLaw{})
	return v, nil
}

// apply computes the runs' relative power from a law.
func (v *speeds) apply(l SpeedLaw) {
	v.law, v.factor = l, make([][]float64, len(v.log))
	for run, log := range v.log {
		v.factor[run] = make([]float64, len(log))
		for i, x := range log {
			v.factor[run][i] = 1
			if v.works[i] {
				v.factor[run][i] = v.level[run] * l.factor(x)
			}
		}
	}
}

// fitLevels fits the runs' power levels to the residuals of their readings about a trace.
func (v *speeds) fitLevels(rows []row, watts []float64) {
	above, below := make([]float64, len(v.level)), make([]float64, len(v.level))
	for _, r := range rows {
		if !r.idle {
			m := r.mean(watts)
			above[r.run] += r.weight * m * r.watts
			below[r.run] += r.weight * m * m
		}
	}
	for run := range v.level {
		if l := above[run] / below[run]; l > 0.5 && l < 2 {
			v.level[run] *= l
		}
	}
	floats.Scale(float64(len(v.level))/floats.Sum(v.level), v.level)
	v.apply(v.law)
}

// found returns the law, or nil if the speeds are unknown.
func (v *speeds) found() *SpeedLaw {
	if v == nil {
		return nil
	}
	return &v.law
}

// scale multiplies a span's weights by a run's relative power.
func (v *speeds) scale(s span, run int) {
	if v != nil {
		floats.Mul(s.share, v.factor[run][s.first:s.first+len(s.share)])
	}
}

// mean converts power at the mean speed to the mean power of the runs. times returns a run's weight.
func (v *speeds) mean(watts []float64, times func(run int) float64) {
	if v == nil {
		return
	}
	factor, all := make([]float64, len(watts)), 0.0
	for run, f := range v.factor {
		floats.AddScaled(factor, times(run), f)
		all += times(run)
	}
	floats.Scale(1/all, factor)
	floats.Mul(watts, factor)
}

// fitSpeedLaw fits the law together with the trace of some sensors, and returns the trace. Exponent and curvature are
// strongly correlated. The curvature is therefore fitted after the exponent, and only if it significantly improves the
// fit.
func (s *stitcher) fitSpeedLaw(ctx context.Context, sensors []*sensor, c *solution) (*solution, error) {
	const (
		rounds      = 3  // the law changes the runs' levels, the smoothness and the readings' weights, so all are fitted repeatedly
		highest     = 4  // largest exponent and curvature
		significant = 12 // least decrease of the squared residuals, in variances; readings of a run are not independent
	)
	if s.speeds == nil {
		return c, nil
	}
	for range rounds {
		var err error
		if c, err = s.fit(ctx, sensors, c.smoothness, growths...); err != nil { // windows may have changed since the last fit
			return nil, err
		}
		s.speeds.fitLevels(c.rows, c.watts)
		if c, err = s.fit(ctx, sensors, c.smoothness); err != nil {
			return nil, err
		}
		misfit := func(l SpeedLaw) float64 {
			if l.Exponent < 0 || l.Exponent > highest || math.Abs(l.Curvature) > highest || ctx.Err() != nil {
				return math.Inf(1)
			}
			s.speeds.apply(l)
			rows := s.rows(sensors)
			if ctx.Err() != nil {
				return math.Inf(1)
			}
			for i := range rows {
				rows[i].weight = c.rows[i].weight
			}
			return assemble(s.cells, rows, once).misfit(rows, c.penalty, c.lambda)
		}
		exponent := func(l *SpeedLaw, step float64) { l.Exponent += step }
		curvature := func(l *SpeedLaw, step float64) { l.Curvature += 4 * step } // the step is larger because speeds differ by only 0.1 to 0.2
		var best SpeedLaw
		least := misfit(best)
		for _, moves := range [][]move[SpeedLaw]{{exponent}, {exponent, curvature}} {
			if l, off := patternSearch(ctx, best, 0.04, misfit, moves...); least-off >= significant {
				best, least = l, off
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.speeds.apply(best)
	}
	return s.fit(ctx, sensors, c.smoothness, growths...)
}
