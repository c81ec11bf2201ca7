package paper

import (
	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
)

// Result is the measurement of a point of an experiment in a setup.
type Result struct {
	Setup      experiment.Setup
	Experiment string
	X          float64 // on its axis
	// A and B are the operands: the experiment's patterns, divided by a power of two if results could overflow.
	A, B         pattern.Pattern
	Relative     float64 // energy of a product relative to the baseline's
	HalfWidth    float64 // of Relative's 95 % interval; NaN: not known
	RelativeTime float64 // time of a product relative to the baseline's
	Watts        float64 // mean power
	Clock        float64 // MHz of the multiprocessors; NaN: not known
	Flushed      float64 // share of the operands' elements that scaling set to zero
}

// Results returns all points of the experiments that a series holds, experiment by experiment. Operands that
// several experiments share were measured once and appear in each.
func Results(s *experiment.Series) (list []Result) {
	measured := map[operands]experiment.Result{}
	for _, r := range s.Results() {
		if r.Experiment != experiment.Null && r.Seed == firstSeed {
			measured[operandsOf(r.Point)] = r
		}
	}
	scaled := map[operands]*experiment.Scaled{}
	for _, session := range s.Sessions {
		for _, p := range session.Points {
			scaled[operandsOf(p.Point)] = p.Scaled
		}
	}
	for _, e := range experiments {
		for _, p := range e.in(s.Setup) {
			o := operandsOf(p)
			m, ok := measured[o]
			if !ok {
				continue
			}
			r := Result{
				Setup: s.Setup, Experiment: e.ID, X: p.At, A: p.X, B: p.W,
				Relative: m.Relative, HalfWidth: m.HalfWidth, RelativeTime: m.RelativeTime, Watts: m.Watts, Clock: m.Clock, Flushed: m.Flushed,
			}
			if c := scaled[o]; c != nil {
				r.A, r.B = c.X, c.W
			}
			list = append(list, r)
		}
	}
	return list
}
