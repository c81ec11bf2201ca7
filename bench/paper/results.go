package paper

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// Result is the measurement of a point of an experiment in a setup.
type Result struct {
	Setup      experiment.Setup
	Experiment string
	X          float64 // place on its experiment's axis
	// A and B are the operands: the experiment's patterns, divided by a power of two if results could overflow.
	A, B pattern.Pattern
	// Relative is the energy of a product over the baseline's, the mean of all seeds.
	Relative     float64
	HalfWidth    float64 // of Relative's 95 % interval; NaN: not known
	Freedom      float64 // degrees of freedom of HalfWidth
	RelativeTime float64 // time of a product over the baseline's
	Watts        float64 // mean power
	Clock        float64 // MHz of the multiprocessors; NaN: not known
	Flushed      float64 // share of the operands' elements that scaling set to zero
	Seeds        int
	Readings     []Reading
}

// Reading is one reading of a point.
type Reading struct {
	Card  string  // UUID of the card
	Idle  float64 // watts of the idle card; NaN: not known
	Watts float64
	Clock float64 // MHz; NaN: not known
}

// Results returns all points of the experiments that a series holds, experiment by experiment. Operands that
// several experiments share were measured once and appear in each.
func Results(s *experiment.Series) (list []Result) {
	seeds := map[operands][]experiment.Result{}
	for _, r := range s.Results() {
		if r.Experiment != experiment.Null {
			o := operandsOf(r.Point)
			seeds[o] = append(seeds[o], r)
		}
	}
	scaled := map[operands]*experiment.Scaled{}
	readings := map[operands][]Reading{}
	for _, session := range s.Sessions {
		left := session.Points[1:] // the points without the baseline, one for each reading
		for _, r := range session.Readings {
			if r.Baseline {
				continue
			}
			p, o := left[0], operandsOf(left[0].Point)
			left, readings[o], scaled[o] = left[1:], append(readings[o], reading(session, r)), p.Scaled
		}
	}
	for _, e := range experiments {
		for _, p := range e.in(s.Setup) {
			o := operandsOf(p)
			if seeds[o] == nil {
				continue
			}
			r := overSeeds(seeds[o])
			r.Setup, r.Experiment, r.X, r.A, r.B, r.Readings = s.Setup, e.ID, p.At, p.X, p.W, readings[o]
			if c := scaled[o]; c != nil {
				r.A, r.B = c.X, c.W
			}
			list = append(list, r)
		}
	}
	return list
}

func reading(s experiment.Session, r measure.Reading) Reading {
	out := Reading{Card: s.Card.UUID, Idle: math.NaN(), Watts: r.Watts, Clock: math.NaN()}
	if s.SelfTest != nil {
		out.Idle = s.SelfTest.IdleWatts
	}
	if r.SMClock != nil {
		out.Clock = *r.SMClock
	}
	return out
}

// fewSeeds is the smallest number of seeds whose spread gives an interval.
const fewSeeds = 3

// overSeeds combines the results of a point's seeds. With fewSeeds or more seeds, the interval is that of the mean over
// seeds, and covers other seeds, too. With fewer seeds it comes from the readings alone, and covers only the drawn operands.
func overSeeds(list []experiment.Result) (r Result) {
	n := float64(len(list))
	r.Seeds, r.Freedom = len(list), math.Inf(1)
	var logs []float64
	var squares float64
	for _, m := range list {
		logs = append(logs, math.Log(m.Relative))
		squares += m.HalfWidth / m.Relative * m.HalfWidth / m.Relative
		r.Freedom = min(r.Freedom, m.Freedom)
		r.RelativeTime += math.Log(m.RelativeTime) / n
		r.Watts, r.Clock = r.Watts+m.Watts/n, r.Clock+m.Clock/n
		r.Flushed = max(r.Flushed, m.Flushed)
	}
	mean, deviation := stat.MeanStdDev(logs, nil)
	r.Relative, r.RelativeTime = math.Exp(mean), math.Exp(r.RelativeTime)
	r.HalfWidth = r.Relative * math.Sqrt(squares) / n
	if len(list) >= fewSeeds {
		r.Freedom = n - 1
		r.HalfWidth = r.Relative * stats.Student(r.Freedom, confidence) * deviation / math.Sqrt(n)
	}
	return r
}
