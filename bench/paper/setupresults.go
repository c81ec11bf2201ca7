package paper

import (
	"cmp"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// axisResults holds the results of an experiment in one setup, in the order of its axis.
type axisResults []Result

// at finds the result at a place on the axis.
func (c axisResults) at(x float64) (Result, bool) {
	i := slices.IndexFunc(c, func(r Result) bool { return r.X == x })
	if i < 0 {
		return Result{}, false
	}
	return c[i], true
}

// upTo returns the last result on the axis beyond 0 and up to limit.
func (c axisResults) upTo(limit float64) (last Result, ok bool) {
	for _, r := range c {
		if r.X > 0 && r.X <= limit {
			last, ok = r, true
		}
	}
	return last, ok
}

// setupResults holds all results of one setup.
type setupResults struct {
	experiment.Setup
	of map[string]axisResults // by experiment
}

// ends returns the results at both ends of an experiment's axis; ok is false if one of them was not measured.
func (s setupResults) ends(id string) (first, last Result, ok bool) {
	i := slices.IndexFunc(experiments, func(e Experiment) bool { return e.ID == id })
	points := experiments[i].Points(s.Type)
	first, hasFirst := s.of[id].at(points[0].X)
	last, hasLast := s.of[id].at(points[len(points)-1].X)
	return first, last, hasFirst && hasLast
}

// bySetup groups results by setup and experiment. Setups come in the order of [Setups], others after them.
// Results whose energy is not a positive number are left out.
func bySetup(results []Result) (list []setupResults) {
	for _, r := range results {
		if !(r.Relative > 0) || math.IsInf(r.Relative, 1) {
			continue
		}
		if math.IsInf(r.HalfWidth, 0) {
			r.HalfWidth = math.NaN()
		}
		i := slices.IndexFunc(list, func(s setupResults) bool { return s.Setup == r.Setup })
		if i < 0 {
			i = len(list)
			list = append(list, setupResults{r.Setup, map[string]axisResults{}})
		}
		list[i].of[r.Experiment] = append(list[i].of[r.Experiment], r)
	}
	slices.SortFunc(list, func(a, b setupResults) int { return compareSetups(a.Setup, b.Setup) })
	for _, s := range list {
		for _, c := range s.of {
			slices.SortFunc(c, func(a, b Result) int { return cmp.Compare(a.X, b.X) })
		}
	}
	return list
}

func setupsOf(all []setupResults) (list []experiment.Setup) {
	for _, s := range all {
		list = append(list, s.Setup)
	}
	return list
}
