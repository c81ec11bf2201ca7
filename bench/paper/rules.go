package paper

import (
	"cmp"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// rule decides whether a takeaway holds in one setup. ok is false if a result that it needs was not measured.
type rule func(s setupResults) (e Effect, ok bool)

// flat holds if no two energies of an experiment differ by limit or more. The effect is the largest difference.
func flat(id string, limit float64) rule {
	return func(s setupResults) (e Effect, ok bool) {
		if _, _, ok := s.ends(id); !ok {
			return e, false
		}
		c := s.of[id]
		var pairs []Effect
		for i := range c {
			for _, r := range c[:i] {
				e := change(r, c[i])
				if c[i].Relative < r.Relative {
					e = change(c[i], r)
				}
				pairs = append(pairs, e.decide(true, limit, len(c)*(len(c)-1)/2))
			}
		}
		return most(pairs, Fails), true
	}
}

// most returns the effect with the largest change of energy, with the outcome of all effects together. If at least one effect has
// the outcome byOne, so has the result. Otherwise the result is Open if one effect is Open.
func most(effects []Effect, byOne Outcome) Effect {
	top := slices.MaxFunc(effects, func(a, b Effect) int { return cmp.Compare(a.Energy, b.Energy) })
	for _, e := range effects {
		if e.Outcome == byOne {
			if top.Outcome != byOne {
				top = e
			}
			return top
		}
	}
	if slices.ContainsFunc(effects, func(e Effect) bool { return e.Outcome == Open }) {
		top.Outcome = Open
	}
	return top
}

// lower holds if the last point of an experiment takes less energy than the first.
func lower(id string) rule {
	return func(s setupResults) (Effect, bool) {
		first, last, ok := s.ends(id)
		return change(first, last).falls(), ok
	}
}

// higher holds if the last point of an experiment takes more energy than the first. The effect is the change from the last point
// to the first.
func higher(id string) rule {
	return func(s setupResults) (Effect, bool) {
		first, last, ok := s.ends(id)
		return change(last, first).falls(), ok
	}
}

// lowerBy holds if the last measured point up to the limit of the type takes less energy than the first. where
// formats the point's place for the effect's text.
func lowerBy(id string, limit func(arith.Type) float64, where string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		first, ok := s.of[id].at(0)
		far, there := s.of[id].upTo(limit(s.Type))
		if !ok || !there {
			return e, false
		}
		return change(first, far).falls().where(where, far.X), true
	}
}

// similar holds if operands of one value take less energy than operands with random bit flips. The flips have the largest
// measured probability up to 1/2.
func similar(id string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		first, ok := s.of[id].at(0)
		far, there := s.of[id].upTo(50)
		if !ok || !there {
			return e, false
		}
		return change(far, first).falls().where("against %v %% flips", far.X), true
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
		freedom := math.Inf(1)
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
			freedom = min(freedom, r.Freedom)
		}
		e = change(first, last)
		e.decision.freedom = freedom
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
// of another experiment. That experiment is the first of others that was measured. The effect is the change from id's first point to
// its last.
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
				e.Outcome, e.decision = more.Outcome, more.decision
			}
			return e.where("sorted fully: %s", percent(change(first, least).Energy)), true
		}
		return e, false
	}
}

// peaked holds if a point between the ends of an experiment takes more energy than its first point.
func peaked(id string) rule {
	return func(s setupResults) (e Effect, ok bool) {
		c := s.of[id]
		if _, _, ok := s.ends(id); !ok || len(c) < 3 {
			return e, false
		}
		var list []Effect
		for _, r := range c[1 : len(c)-1] {
			e := change(c[0], r)
			list = append(list, e.decide(false, 0, len(c)-2).where("at %v %% zeros", r.X))
		}
		return most(list, Holds), true
	}
}
