package paper

import (
	"cmp"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
)

// Quick is the number of points that show the ends and the middle of an experiment.
const Quick = 3

// seed is the seed of all operands. If only the weights change, x must not depend on the point.
const seed = 1

// Job returns the points of all experiments in a setup, with at most that many points of each experiment; 0 means
// all. The ends of all axes come first, then the middles, then the quarters, so an interrupted run has some points of
// every experiment. Operands that several experiments share, such as those at 0 %, are measured once, and
// [Results] gives the measurement to each experiment.
func Job(s experiment.Setup, most int) experiment.Job {
	base := pattern.MustParse(usual(s.Type))
	w := experiment.Job{Setup: s, Baseline: experiment.Point{Experiment: "baseline", X: base, W: base, Seed: seed}}
	if s.Change == experiment.Weights {
		w.Baseline.X = inputs(s.Type)
	}
	type ranked struct {
		experiment.Point
		rank int
	}
	var all []ranked
	for _, e := range experiments {
		points := e.in(s)
		for rank, i := range byHalves(len(points)) {
			if most == 0 || rank < most {
				all = append(all, ranked{points[i], max(1, rank)}) // both ends are of rank 1
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	seen := map[operands]bool{}
	for _, p := range all {
		if o := operandsOf(p.Point); !seen[o] {
			seen[o] = true
			w.Points = append(w.Points, p.Point)
		}
	}
	return w
}

// in returns the experiment's points in a setup.
func (e Experiment) in(s experiment.Setup) (list []experiment.Point) {
	if e.Apart && s.Change == experiment.Weights {
		return nil
	}
	for _, at := range e.Points(s.Type) {
		p := experiment.Point{Experiment: e.ID, At: at.X, X: at.A, W: at.B, Seed: seed}
		if s.Change == experiment.Weights {
			p.X, p.W = inputs(s.Type), at.A
		}
		list = append(list, p)
	}
	return list
}

// inputs is the pattern of x if only the weights change.
func inputs(t arith.Type) pattern.Pattern {
	if width(t) == 8 {
		return pattern.MustParse(usual(t))
	}
	return pattern.MustParse(normal(0, 1))
}

// operands are the patterns of a point.
type operands struct{ x, w pattern.Pattern }

func operandsOf(p experiment.Point) operands { return operands{p.X, p.W} }

// byHalves orders 0 … n−1 from coarse to fine: the ends, then the middle of each gap.
func byHalves(n int) (order []int) {
	switch n {
	case 0:
		return nil
	case 1:
		return []int{0}
	}
	order = []int{0, n - 1}
	for gaps := [][2]int{{0, n - 1}}; len(gaps) > 0; gaps = gaps[1:] {
		low, high := gaps[0][0], gaps[0][1]
		if high-low < 2 {
			continue
		}
		middle := (low + high) / 2
		order = append(order, middle)
		gaps = append(gaps, [2]int{low, middle}, [2]int{middle, high})
	}
	return order
}
