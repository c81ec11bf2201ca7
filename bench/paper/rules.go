package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// rule decides whether a takeaway holds in one setup. ok is false if a result that it needs was not measured.
type rule func(s setupResults) (e Effect, ok bool)

// flat holds if the energies of an experiment lie within ±limit of their middle. The effect is the whole range.
func flat(id string, limit float64) rule {
	return func(s setupResults) (e Effect, ok bool) {
		if _, _, ok := s.ends(id); !ok {
			return e, false
		}
		energy := func(a, b Result) int { return cmp.Compare(a.Relative, b.Relative) }
		e = change(slices.MinFunc(s.of[id], energy), slices.MaxFunc(s.of[id], energy))
		e.Outcome = outcome(limit-e.Energy/2, e.HalfWidth/2)
		return e, true
	}
}

// lower holds if the last point of an experiment takes less energy than the first.
func lower(id string) rule {
	return func(s setupResults) (Effect, bool) {
		first, last, ok := s.ends(id)
		return change(first, last).falls(), ok
	}
}

// higher holds if the last point takes more energy than the first. The effect is the change from the last to the first.
func higher(id string) rule {
	return func(s setupResults) (Effect, bool) {
		first, last, ok := s.ends(id)
		return change(last, first).falls(), ok
	}
}

// lowerBy holds if the last measured point up to the limit of the type takes less energy than the first. The unit
// follows the point's place in the effect's text.
func lowerBy(id string, limit func(arith.Type) float64, unit string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		first, ok := s.of[id].at(0)
		far, there := s.of[id].upTo(limit(s.Type))
		if !ok || !there {
			return e, false
		}
		return change(first, far).falls().where("at %v%s", far.X, unit), true
	}
}

// similar holds if operands of one value take less energy than operands with random bit flips: those of the
// largest measured probability up to 1/2.
func similar(id string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		first, ok := s.of[id].at(0)
		far, there := s.of[id].upTo(50)
		if !ok || !there {
			return e, false
		}
		return change(far, first).falls().where("against %v %%", far.X), true
	}
}

// rising holds if a straight line fitted to an experiment rises. The effect is its rise over the whole axis.
func rising(id string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		first, last, ok := s.ends(id)
		c := s.of[id]
		if !ok || len(c) < 3 {
			return e, false
		}
		var mean, squares, slope, variance float64
		for _, r := range c {
			mean += r.X / float64(len(c))
		}
		for _, r := range c {
			squares += (r.X - mean) * (r.X - mean)
		}
		for _, r := range c {
			by := (r.X - mean) / squares
			slope += by * r.Relative
			variance += by * by * r.HalfWidth * r.HalfWidth
		}
		e = change(first, last)
		scale := (last.X - first.X) / first.Relative
		e.Energy, e.HalfWidth = slope*scale, math.Sqrt(variance)*scale
		return e.rises(), true
	}
}

// below holds if the last point of an experiment takes less energy than the last point of another.
func below(id, other string) rule {
	return func(s setupResults) (Effect, bool) {
		_, last, ok := s.ends(id)
		_, otherLast, there := s.ends(other)
		return change(otherLast, last).falls(), ok && there
	}
}

// between holds if the last point of an experiment takes less energy than its first, and more than the last point
// of another experiment, the first of others that was measured. The effect is the change from the first point.
func between(id string, others ...string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		first, last, ok := s.ends(id)
		for _, other := range others {
			_, least, there := s.ends(other)
			if !ok || !there {
				continue
			}
			e, more := change(first, last).falls(), change(least, last).rises()
			if e.Outcome == Holds {
				e.Outcome = more.Outcome
			}
			return e.where("sorted fully: %s", percent(change(first, least).Energy)), true
		}
		return e, false
	}
}

// peaked holds if a point between the ends of an experiment takes more energy than its first point.
func peaked(id string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		first, _, ok := s.ends(id)
		c := s.of[id]
		if !ok || len(c) < 3 {
			return e, false
		}
		top := slices.MaxFunc(c[1:len(c)-1], func(a, b Result) int { return cmp.Compare(a.Relative, b.Relative) })
		return change(first, top).rises().where("at %v %%", top.X), true
	}
}

// drawsMost holds if a type draws at least 1 % more power than each of the others, on average over experiments,
// under the same conditions.
func drawsMost(typ arith.Type, others []arith.Type, ids ...string) func([]setupResults) []Effect {
	power := func(s setupResults) (mean float64) {
		n := 0
		for _, id := range ids {
			for _, r := range s.of[id] {
				mean, n = mean+r.Watts, n+1
			}
		}
		return mean / float64(n) // NaN where nothing was measured
	}
	return func(all []setupResults) (list []Effect) {
		for _, s := range all {
			if s.Type != typ || math.IsNaN(power(s)) {
				continue
			}
			next, name := 0.0, ""
			for _, o := range all {
				alike := o.Setup
				alike.Type = typ
				if w := power(o); alike == s.Setup && slices.Contains(others, o.Type) && w > next {
					next, name = w, fmt.Sprintf("%v, %.0f W", o.Type, w)
				}
			}
			if next == 0 {
				continue
			}
			e := Effect{Setup: s.Setup, Energy: math.NaN(), HalfWidth: math.NaN(), Power: power(s)/next - 1, Outcome: Fails}
			if e.Power >= 0.01 {
				e.Outcome = Holds
			}
			list = append(list, e.where("%.0f W; next is %s", power(s), name))
		}
		return list
	}
}
