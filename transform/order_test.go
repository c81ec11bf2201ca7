package transform

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"pgregory.net/rapid"
)

// drawOrdering is the search for an order of the rows of a random matrix on some wires.
func drawOrdering(t *rapid.T) *ordering {
	n, cols := rapid.IntRange(2, 24).Draw(t, "labels"), rapid.IntRange(1, 12).Draw(t, "columns")
	x := memory(weights.BF16, []int{n, cols}, drawBytes(t, n*cols*2, "data"))
	u := useOf(x, 0, singly(n))
	u.dir = ones(n)
	u.follow = drawWires(t)
	return orderingOf(t, sketchOptions{signs: rapid.Bool().Draw(t, "signs")}, u)
}

// drawWires are one to three of different lags, the first everywhere.
func drawWires(t *rapid.T) []wire {
	list := []wire{{rapid.IntRange(1, 3).Draw(t, "lag"), [laneRun]float64{1, 1, 1, 1}}}
	for range rapid.IntRange(0, 2).Draw(t, "more wires") {
		w := wire{lag: list[len(list)-1].lag + rapid.IntRange(1, 4).Draw(t, "next lag")}
		for i := range w.weight {
			w.weight[i] = float64(rapid.IntRange(0, 2).Draw(t, "weight")) / 2
		}
		list = append(list, w)
	}
	return list
}

func orderingOf(t tb, o sketchOptions, uses ...*use) *ordering {
	t.Helper()
	s := sketchOf(t, o, uses...)
	return &ordering{sketch: s, course: newCourse(s.labels, s.groups, s.heavy), workers: max(1, o.workers),
		magnitudes: func() ([]float64, error) { return magnitudes(context.Background(), uses, s.labels) }}
}

// singly gives every label one position.
func singly(n int) [][]int {
	list := make([][]int, n)
	for i := range list {
		list[i] = []int{i}
	}
	return list
}

func useOf(x weights.Tensor, axis int, positions [][]int) *use {
	u := &use{tensor: x, format: formatOf(x.DType), axis: axis, positions: positions, weight: 1}
	u.rows, u.cols = x.Matrix()
	return u
}

// nearestPlainly is nearestNeighbour with a list.
func nearestPlainly(far func(a, b int) float64, candidates []int, window int) []int {
	left := slices.Clone(candidates[1:])
	order := []int{candidates[0]}
	for len(left) > 0 {
		best, last := 0, order[len(order)-1]
		for i := range left[:min(window, len(left))] {
			if far(last, left[i]) < far(last, left[best]) {
				best = i
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return order
}

func TestNearestNeighbour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrdering(t)
		candidates := rapid.Permutation(identity(o.labels)).Draw(t, "candidates")
		window, joint := rapid.IntRange(1, o.labels+2).Draw(t, "window"), rapid.Bool().Draw(t, "joint")
		got, err := o.nearestNeighbour(t.Context(), candidates, window, joint)
		ok(t, err)
		if want := nearestPlainly(o.distance(joint), candidates, window); !slices.Equal(got, want) {
			t.Fatalf("order %v, want %v", got, want)
		}
	})
}

var methods = [][]string{nil, {"tour"}, {"tour", "5"}, {"tour", "1"}, {"greedy"}, {"sort"}, {"window", "3"}, {"window", "1000"}}

func TestEveryMethodGivesAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrdering(t)
		for _, args := range methods {
			path, err := o.path(t.Context(), args, rapid.Bool().Draw(t, "joint"))
			ok(t, err)
			if !isPermutation(path, o.labels) || !isPermutation(o.course.lay(path), o.labels) {
				t.Fatalf("%v: %v is no permutation", args, path)
			}
			if !slices.Equal(o.course.pick(o.course.lay(path)), path) {
				t.Fatalf("%v comes back from its places as another path", path)
			}
		}
		magnitude, err := o.magnitudes()
		ok(t, err)
		path, err := o.path(t.Context(), []string{"sort"}, false)
		ok(t, err)
		if !slices.IsSortedFunc(path, func(a, b int) int { return int(math.Copysign(1, magnitude[a]-magnitude[b])) }) && len(slices.Compact(slices.Sorted(slices.Values(magnitude)))) == o.labels {
			t.Fatalf("%v is not sorted by %v", path, magnitude)
		}
	})
}

// No order is taken that toggles more than the source's, and none that counts on signs toggles more, with
// the signs that it gets, than one that does not.
func TestNoOrderIsWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrdering(t)
		args := rapid.SampledFrom(methods).Draw(t, "method")
		toggles := func(order []int, signs bool) float64 {
			if order == nil {
				order = identity(o.labels)
			}
			sum, err := o.toggles(t.Context(), o.course.pick(order), signs)
			ok(t, err)
			return sum
		}
		alone, err := o.best(t.Context(), args, false)
		ok(t, err)
		joint, err := o.best(t.Context(), args, true)
		ok(t, err)
		if toggles(alone, false) > toggles(nil, false) || toggles(joint, true) > toggles(nil, true) {
			t.Fatalf("%v: the order toggles more than the source's", args)
		}
		if toggles(joint, true) > toggles(alone, true) {
			t.Fatalf("%v: together %g bits, one after the other %g", args, toggles(joint, true), toggles(alone, true))
		}
		if toggles(alone, true) > toggles(alone, false) {
			t.Fatal("signs make more bits toggle")
		}
	})
}

// togglesPlainly counts, element by element, what toggles on the wires of rows in an order.
func togglesPlainly(u *use, order []int) (sum float64) {
	for place := range order {
		for _, w := range u.follow {
			if place+w.lag < len(order) {
				plain := *u
				plain.dir = nil
				sum += w.weight[place%laneRun] * toggling(&plain, order[place], order[place+w.lag], false)
			}
		}
	}
	return sum
}

// What is minimised is what toggles in the places where labels end up.
func TestTogglesAreThoseOfPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "labels")
		u := useOf(memory(weights.BF16, []int{n, 5}, drawBytes(t, n*10, "data")), 0, singly(n))
		u.follow = drawWires(t)
		o := orderingOf(t, sketchOptions{}, u)
		order := rapid.Permutation(identity(n)).Draw(t, "order")
		got, err := o.toggles(t.Context(), o.course.pick(order), false)
		ok(t, err)
		if want := togglesPlainly(u, order); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%g bits, want %g", got, want)
		}
	})
}

// On a path the signs are the best of all; on any wires turning one label gains nothing, and none toggles
// more than without signs.
func TestSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "labels")
		u := useOf(memory(weights.BF16, []int{n, 3}, drawBytes(t, n*6, "data")), 0, singly(n))
		u.dir, u.follow = ones(n), drawWires(t)
		if rapid.Bool().Draw(t, "path") {
			u.follow = one
		}
		o := orderingOf(t, sketchOptions{signs: true}, u)
		c, err := o.crossings(t.Context(), o.course, o.course.pick(identity(n)), 1)
		ok(t, err)
		fixed := make([]bool, n)
		turned := c.signs(fixed)
		sum := c.sum(turned)
		for all := range 1 << n {
			other := make([]bool, n)
			for i := range other {
				other[i] = all>>i&1 != 0
			}
			differ := 0
			for i := range other {
				if other[i] != turned[i] {
					differ++
				}
			}
			if best := len(u.follow) == 1; (best || differ == 1 || all == 0) && c.sum(other) < sum-1e-6 {
				t.Fatalf("%v toggles %g bits, %v %g", turned, sum, other, c.sum(other))
			}
		}
		fixed[n/2] = true
		if c.signs(fixed)[n/2] {
			t.Fatal("a fixed label is turned")
		}
	})
}

// planted are rows drawn from few prototypes with a little noise, one prototype's after the other's; some
// are multiplied by −1.
func planted(prototypes, each, cols int, turned bool) [][]float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows [][]float32
	for range prototypes {
		proto := make([]float32, cols)
		for i := range proto {
			proto[i] = float32(rng.NormFloat64())
		}
		for range each {
			row := slices.Clone(proto)
			for range 4 {
				row[rng.IntN(cols)] = float32(rng.NormFloat64())
			}
			if turned && rng.IntN(2) == 0 {
				for i := range row {
					row[i] = -row[i]
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func orderingOfRows(t tb, rows [][]float32, order []int, o sketchOptions, follow []wire) *ordering {
	var v []float32
	for _, i := range order {
		v = append(v, rows[i]...)
	}
	u := useOf(matrix(weights.BF16, len(rows[0]), v), 0, singly(len(rows)))
	u.dir, u.follow = ones(len(rows)), follow
	return orderingOf(t, o, u)
}

// lanes are the wires of streaming rows.
var lanes = []wire{{1, [laneRun]float64{0.7, 1.4, 0.7, 0}}, {5, [laneRun]float64{0, 0, 0, 1.2}}}

// Every search must bring each prototype's rows together again, whatever the wires, and rows of one
// prototype that differ in sign where signs may be chosen.
func TestPlantedStructureIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, turned := range []bool{false, true} {
		rows := planted(6, 40, 64, turned)
		for _, follow := range [][]wire{one, lanes, {{32, one[0].weight}}} {
			source := orderingOfRows(t, rows, identity(len(rows)), sketchOptions{signs: turned}, follow)
			want, err := source.toggles(t.Context(), identity(len(rows)), turned)
			ok(t, err)
			for _, args := range [][]string{nil, {"greedy"}, {"tour", "60"}} {
				o := orderingOfRows(t, rows, rng.Perm(len(rows)), sketchOptions{signs: turned}, follow)
				order, err := o.best(t.Context(), args, turned)
				ok(t, err)
				got, err := o.toggles(t.Context(), o.course.pick(order), turned)
				ok(t, err)
				before, err := o.toggles(t.Context(), o.course.pick(identity(len(rows))), turned)
				ok(t, err)
				if got > 1.35*want || before < 2*want { // blocks cut through prototypes
					t.Errorf("%v on %v: %g bits toggle, %g as planted, %g shuffled", args, follow, got, want, before)
				}
			}
		}
	}
}

// An order is the same whatever the number of workers.
func TestOrderAtAnyWorkers(t *testing.T) {
	rows := planted(7, 30, 40, true)
	shuffle := rand.New(rand.NewPCG(5, 6)).Perm(len(rows))
	for _, args := range [][]string{nil, {"tour", "50"}} {
		var first []int
		for _, workers := range []int{1, 2, 5} {
			o := orderingOfRows(t, rows, shuffle, sketchOptions{signs: true, workers: workers}, lanes)
			order, err := o.best(t.Context(), args, true)
			ok(t, err)
			if first == nil {
				first = order
			}
			if !slices.Equal(order, first) {
				t.Errorf("%v: another order with %d workers", args, workers)
			}
		}
	}
}

func TestOrderIsCancelled(t *testing.T) {
	o := orderingOfRows(t, planted(4, 20, 16, false), identity(80), sketchOptions{}, lanes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range methods {
		if args != nil && args[0] == "sort" {
			continue
		}
		if _, err := o.path(ctx, args, false); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: the error is %v", args, err)
		}
	}
}

// A tour's improvements never make it longer, and keep all its labels.
func TestTourImproves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrdering(t)
		tour, err := o.newTour(t.Context(), identity(o.labels), rapid.Bool().Draw(t, "joint"), 1)
		ok(t, err)
		length := func(path []int) (sum float64) {
			for i := range path[1:] {
				sum += tour.dist(path[i], path[i+1])
			}
			return sum
		}
		ok(t, tour.begin(t.Context()))
		before := length(tour.path())
		ok(t, tour.improve(t.Context()))
		path := tour.path()
		if after := length(path); !isPermutation(path, o.labels) || after > before*(1+1e-6) {
			t.Fatalf("%v of length %g, from %g", path, after, before)
		}
		ties := o.course.within(0, o.labels)
		all := func() (sum float64) {
			for i, list := range ties {
				for _, e := range list {
					sum += e.weight * float64(tour.groups[e.group][path[i]*tour.nodes+path[e.to]])
				}
			}
			return sum
		}
		before = all()
		ok(t, tour.exchange(t.Context(), path, ties))
		if !isPermutation(path, o.labels) || all() > before*(1+1e-6) {
			t.Fatalf("exchanges made %v of %g out of %g", path, all(), before)
		}
	})
}
