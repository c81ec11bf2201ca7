package paper

import (
	"cmp"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// curve is an experiment in one setup, in the order of its axis.
type curve []Result

// at finds a place on the axis.
func (c curve) at(x float64) (Result, bool) {
	i := slices.IndexFunc(c, func(r Result) bool { return r.X == x })
	if i < 0 {
		return Result{}, false
	}
	return c[i], true
}

// upTo is the place furthest along the axis, beyond 0 and at most at limit.
func (c curve) upTo(limit float64) (last Result, ok bool) {
	for _, r := range c {
		if r.X > 0 && r.X <= limit {
			last, ok = r, true
		}
	}
	return last, ok
}

// setupCurves is all that was measured in one setup.
type setupCurves struct {
	experiment.Setup
	of map[string]curve // by experiment
}

// ends are the first and the last place of an experiment's axis; ok is false where one of the two was
// not measured.
func (s setupCurves) ends(id string) (first, last Result, ok bool) {
	i := slices.IndexFunc(experiments, func(e Experiment) bool { return e.ID == id })
	points := experiments[i].Points(s.Type)
	first, hasFirst := s.of[id].at(points[0].X)
	last, hasLast := s.of[id].at(points[len(points)-1].X)
	return first, last, hasFirst && hasLast
}

// curves sorts results by setup, in the order of [Setups] with any others behind them, and
// experiment. Energies that are no positive numbers, which no measurement gives, are left out.
func curves(results []Result) (list []setupCurves) {
	for _, r := range results {
		if !(r.Relative > 0) || math.IsInf(r.Relative, 1) {
			continue
		}
		if math.IsInf(r.HalfWidth, 0) {
			r.HalfWidth = math.NaN()
		}
		i := slices.IndexFunc(list, func(s setupCurves) bool { return s.Setup == r.Setup })
		if i < 0 {
			i = len(list)
			list = append(list, setupCurves{r.Setup, map[string]curve{}})
		}
		list[i].of[r.Experiment] = append(list[i].of[r.Experiment], r)
	}
	slices.SortFunc(list, func(a, b setupCurves) int { return compareSetups(a.Setup, b.Setup) })
	for _, s := range list {
		for _, c := range s.of {
			slices.SortFunc(c, func(a, b Result) int { return cmp.Compare(a.X, b.X) })
		}
	}
	return list
}

func setupsOf(all []setupCurves) (list []experiment.Setup) {
	for _, s := range all {
		list = append(list, s.Setup)
	}
	return list
}
