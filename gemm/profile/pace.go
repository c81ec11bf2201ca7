package profile

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"
)

// Runs differ: the card lowers its clock somewhat earlier in one than in another, and its power falls with it. But
// how fast each run works is known at every moment, from its stamps, and power follows pace by one law, which shows
// in how runs differ at the same moment. So what readings are stitched to is power at the usual pace, which
// changes slowly; what a run draws is that times what the law makes of its own pace. A run may draw a little more or
// less at any pace, too: a warm die leaks more.

// Law of power and pace: where executions are exp(x) times as fast as is usual, power is exp(Order·x + Bend·x²)
// times as high. A card that lowers its clock alone has an order of 1 or less, one that lowers its voltage with it
// up to 3.
type Law struct {
	Order float64 `json:"order"`
	Bend  float64 `json:"bend"`
}

func (l Law) factor(x float64) float64 { return math.Exp((l.Order + l.Bend*x) * x) }

// pacing holds what runs draw over what they would at the usual pace. A nil one knows no paces.
type pacing struct {
	law    Law
	level  []float64   // of each run's power while it works; their mean is 1
	works  []bool      // whether the card does, in each cell
	pace   [][]float64 // logarithms, of each run in each cell
	factor [][]float64 // what the law makes of them
}

// paced reads the runs' paces.
func (s *stitching) paced(ctx context.Context) (*pacing, error) {
	if s.opt.Pace == nil || len(s.breaks) < 2 {
		return nil, nil
	}
	p := &pacing{pace: make([][]float64, s.runs), level: make([]float64, s.runs), works: make([]bool, s.n)}
	begin, end := s.breaks[0], s.breaks[len(s.breaks)-1]
	for run, number := range s.number {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.pace[number], p.level[number] = make([]float64, s.n), 1
		for i := range s.n {
			from, to := max(begin, float64(i)*s.step), min(end, float64(i+1)*s.step)
			if to-from < s.step/10 { // no work to speak of
				continue
			}
			p.works[i] = true
			if x := math.Log(s.opt.Pace(run, s.from+seconds(from), s.from+seconds(to))); !math.IsNaN(x) && !math.IsInf(x, 0) {
				p.pace[number][i] = x
			}
		}
	}
	p.follow(Law{})
	return p, nil
}

// follow a law.
func (p *pacing) follow(l Law) {
	p.law, p.factor = l, make([][]float64, len(p.pace))
	for run, pace := range p.pace {
		p.factor[run] = make([]float64, len(pace))
		for i, x := range pace {
			p.factor[run][i] = 1
			if p.works[i] {
				p.factor[run][i] = p.level[run] * l.factor(x)
			}
		}
	}
}

// settle the levels of runs by how their readings lie to a curve.
func (p *pacing) settle(rows []row, watts []float64) {
	above, below := make([]float64, len(p.level)), make([]float64, len(p.level))
	for _, r := range rows {
		if !r.idle {
			m := r.mean(watts)
			above[r.run] += r.weight * m * r.watts
			below[r.run] += r.weight * m * m
		}
	}
	for run := range p.level {
		if l := above[run] / below[run]; l > 0.5 && l < 2 {
			p.level[run] *= l
		}
	}
	floats.Scale(float64(len(p.level))/floats.Sum(p.level), p.level)
	p.follow(p.law)
}

// found is the law, nil where no pace is known.
func (p *pacing) found() *Law {
	if p == nil {
		return nil
	}
	return &p.law
}

// weigh a span by what a run draws.
func (p *pacing) weigh(s span, run int) {
	if p != nil {
		floats.Mul(s.share, p.factor[run][s.first:s.first+len(s.share)])
	}
}

// mean power of runs, each counted so many times, in the place of power at the usual pace.
func (p *pacing) mean(watts []float64, times func(run int) float64) {
	if p == nil {
		return
	}
	factor, all := make([]float64, len(watts)), 0.0
	for run, f := range p.factor {
		floats.AddScaled(factor, times(run), f)
		all += times(run)
	}
	floats.Scale(1/all, factor)
	floats.Mul(watts, factor)
}

// legislate finds the law with which a curve of some sources' readings misses these, and is rough, least; and the
// curve. Order and bend can hardly be told apart: a bend is sought only after the order, and where it explains more.
func (s *stitching) legislate(ctx context.Context, sources []*source, c *solution) (*solution, error) {
	const (
		rounds      = 3  // the runs' levels, the smoothness and the readings' weights follow the law
		highest     = 4  // order, and bend
		significant = 12 // less of a squared residual, in variances: readings of a run are not independent
	)
	if s.pacing == nil {
		return c, nil
	}
	for range rounds {
		var err error
		if c, err = s.fit(ctx, sources, c.smoothness, growths...); err != nil { // windows may have changed since
			return nil, err
		}
		s.pacing.settle(c.rows, c.watts)
		if c, err = s.fit(ctx, sources, c.smoothness); err != nil {
			return nil, err
		}
		misfit := func(l Law) float64 {
			if l.Order < 0 || l.Order > highest || math.Abs(l.Bend) > highest || ctx.Err() != nil {
				return math.Inf(1)
			}
			s.pacing.follow(l)
			rows := s.rows(sources)
			if ctx.Err() != nil {
				return math.Inf(1)
			}
			for i := range rows {
				rows[i].weight = c.rows[i].weight
			}
			return assemble(s.cells, rows, once).misfit(rows, c.bend, c.lambda)
		}
		order := func(l *Law, step float64) { l.Order += step }
		bend := func(l *Law, step float64) { l.Bend += 4 * step } // paces differ by a tenth or two
		var best Law
		least := misfit(best)
		for _, moves := range [][]move[Law]{{order}, {order, bend}} {
			if l, off := descend(ctx, best, 0.04, misfit, moves...); least-off >= significant {
				best, least = l, off
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.pacing.follow(best)
	}
	return s.fit(ctx, sources, c.smoothness, growths...)
}
