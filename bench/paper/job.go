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

// firstSeed is the seed of all points. The main points are drawn from the seeds after it, too.
const firstSeed = 1

// Points chooses points of the experiments. The zero value chooses all, from one seed.
type Points struct {
	Experiments []string // IDs; none: all
	Most        int      // the largest number of points of each experiment; 0: all
	Seeds       int      // the number of seeds of the main points
}

// Job returns points of the experiments in a setup. The ends of all axes come first, then the middles, then the quarters.
// So an interrupted run has some points of every experiment. Further seeds of the main points come last. Operands that
// several experiments share, such as those at 0 %, are measured once, and [Results] gives the measurement to each
// experiment.
func Job(s experiment.Setup, choice Points) experiment.Job {
	base := pattern.MustParse(usual(s.Type))
	w := experiment.Job{Setup: s, Baseline: experiment.Point{Experiment: "baseline", X: base, W: base, Seed: firstSeed}}
	if s.Change == experiment.Weights {
		w.Baseline.X = inputs(s.Type)
	}
	type ranked struct {
		experiment.Point
		rank int
	}
	var all []ranked
	var more []experiment.Point
	chosen := map[drawn]bool{}
	for _, e := range experiments {
		of := choice.Experiments == nil || slices.Contains(choice.Experiments, e.ID)
		points, main := e.in(s), e.Main(s.Type)
		for rank, i := range byHalves(len(points)) {
			p := ranked{points[i], max(1, rank)} // both ends are of rank 1
			all = append(all, p)
			if of && (choice.Most == 0 || rank < choice.Most) {
				chosen[drawnOf(p.Point)] = true
			}
			if !slices.Contains(main, p.At) {
				continue
			}
			for seed := firstSeed + 1; seed <= choice.Seeds; seed++ {
				p.Seed = uint64(seed)
				more = append(more, p.Point)
				if of {
					chosen[drawnOf(p.Point)] = true
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	var first []experiment.Point
	for _, p := range all {
		first = append(first, p.Point)
	}
	for _, p := range append(first, more...) {
		if o := drawnOf(p); chosen[o] {
			delete(chosen, o) // shared operands keep the first name
			w.Points = append(w.Points, p)
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
		p := experiment.Point{Experiment: e.ID, At: at.X, X: at.A, W: at.B, Seed: firstSeed}
		if s.Change == experiment.Weights {
			p.X, p.W = inputs(s.Type), at.A
		}
		list = append(list, p)
	}
	return list
}

// inputs returns the pattern of x if only the weights change.
func inputs(t arith.Type) pattern.Pattern {
	if width(t) == 8 {
		return pattern.MustParse(usual(t))
	}
	return pattern.MustParse(normal(0, 1))
}

// operands are the patterns of a point.
type operands struct{ x, w pattern.Pattern }

func operandsOf(p experiment.Point) operands { return operands{p.X, p.W} }

// drawn are the operands from one seed.
type drawn struct {
	operands
	seed uint64
}

func drawnOf(p experiment.Point) drawn { return drawn{operandsOf(p), p.Seed} }

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
