package experiment

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Result holds the means of a point's readings.
type Result struct {
	Point
	Relative float64 // energy of a product over the baseline's
	// HalfWidth is half the width of Relative's 95 % interval; NaN with too few readings.
	HalfWidth    float64
	Freedom      float64 // degrees of freedom of HalfWidth
	RelativeTime float64 // time of a product over the baseline's
	Joules       float64 // of one product
	Seconds      float64 // of one product
	Watts        float64 // mean power
	Clock        float64 // MHz of the multiprocessors; NaN: not known
	Capped       float64 // share of the samples at the power cap; NaN: not known
	Flushed      float64 // share of the operands' elements that scaling set to zero
	Readings     int
}

// confidence of the intervals.
const confidence = 0.95

// Results returns the results of all points except the baseline, in the order of their first readings. The null
// points are among them.
func (s *Series) Results() []Result {
	all := s.gather()
	variance, freedom := s.spread(all)
	quantile := math.NaN()
	if freedom >= 1 {
		quantile = stats.Student(freedom, confidence)
	}
	list := make([]Result, len(all))
	for i, g := range all {
		n := len(g.energy)
		mean := func(v []float64) float64 { return stat.Mean(v, nil) }
		r := Result{
			Point: g.Point, Flushed: g.flushed, Readings: n, Freedom: freedom,
			Relative: math.Exp(mean(g.energy)), RelativeTime: math.Exp(mean(g.time)),
			Joules: mean(g.joules), Seconds: mean(g.seconds), Watts: mean(g.watts),
			Clock: mean(g.clock), Capped: mean(g.capped),
		}
		r.HalfWidth = r.Relative * quantile * math.Sqrt(variance/float64(n))
		list[i] = r
	}
	return list
}

// gathered holds all readings of a point.
type gathered struct {
	Point
	flushed                float64
	energy, time           []float64 // logarithms of ratios to the baseline
	joules, seconds, watts []float64
	clock, capped          []float64 // where known
}

func (s *Series) gather() []*gathered {
	var all []*gathered
	by := map[Point]*gathered{}
	of := func(m Measured) *gathered {
		if g := by[m.Point]; g != nil {
			return g
		}
		g := &gathered{Point: m.Point}
		by[m.Point] = g
		if m.Scaled != nil {
			g.flushed = m.Scaled.Flushed
		}
		all = append(all, g)
		return g
	}
	for _, session := range s.Sessions {
		// Points[0] is the baseline, with which every session begins.
		for i, r := range session.Relative() {
			g := of(session.Points[1+i])
			g.energy, g.time = append(g.energy, math.Log(r.Energy)), append(g.time, math.Log(r.Time))
			g.joules, g.seconds, g.watts = append(g.joules, r.PerExecution), append(g.seconds, r.Seconds), append(g.watts, r.Watts)
			g.clock, g.capped = known(g.clock, r.SMClock), known(g.capped, r.CappedShare)
		}
	}
	return all
}

func known(list []float64, v *float64) []float64 {
	if v == nil {
		return list
	}
	return append(list, *v)
}

// spread returns the variance of a reading's relative energy, as a share of that energy, and its degrees of freedom. It pools
// the scatter of the baseline in every session with the scatter of repeated readings. Neighbouring differences of baseline
// readings share a reading, so each difference counts as half a degree of freedom.
func (s *Series) spread(all []*gathered) (variance, freedom float64) {
	var squares float64
	for _, session := range s.Sessions {
		baselines := 0
		for _, r := range session.Readings {
			if r.Baseline {
				baselines++
			}
		}
		if scatter := session.Scatter(); !math.IsNaN(scatter) {
			free := float64(baselines-2) / 2
			squares, freedom = squares+free*scatter*scatter, freedom+free
		}
	}
	for _, g := range all {
		if n := float64(len(g.energy)); n > 1 {
			squares, freedom = squares+(n-1)*stat.Variance(g.energy, nil), freedom+n-1
		}
	}
	return squares / freedom, freedom
}
