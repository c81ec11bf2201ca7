package paper

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// TestJob: every setup can be measured, holds all operands of all experiments once, and begins
// with the ends.
func TestJob(t *testing.T) {
	setups := Setups()
	if len(setups) != 15 {
		t.Errorf("%d setups", len(setups))
	}
	for _, s := range setups {
		w := Job(s, Points{})
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		place := map[operands]int{}
		for i, p := range w.Points {
			if _, twice := place[operandsOf(p)]; twice {
				t.Errorf("%v: %s is measured twice", s, p.Name())
			}
			place[operandsOf(p)] = i
		}
		lastEnd, firstMiddle, places := 0, len(w.Points), map[operands]bool{}
		for _, e := range experiments {
			points := e.in(s)
			for i, p := range points {
				at, ok := place[operandsOf(p)]
				if !ok {
					t.Errorf("%v: %s is not measured", s, p.Name())
				}
				places[operandsOf(p)] = true
				if i == 0 || i == len(points)-1 {
					lastEnd = max(lastEnd, at)
				} else if w.Points[at].Experiment == e.ID && w.Points[at].At == p.At {
					firstMiddle = min(firstMiddle, at)
				}
			}
		}
		if len(places) != len(w.Points) {
			t.Errorf("%v: %d operands for %d points", s, len(places), len(w.Points))
		}
		if firstMiddle < lastEnd {
			t.Errorf("%v: a middle at %d stands before an end at %d", s, firstMiddle, lastEnd)
		}
	}
}

// TestQuick: a quick job is three points of every experiment, and the whole job begins with it.
func TestQuick(t *testing.T) {
	for _, s := range Setups() {
		quick, whole := Job(s, Points{Most: Quick}), Job(s, Points{})
		if n := len(quick.Points); n < 20 || n > 3*len(experiments) {
			t.Errorf("%v: %d points", s, n)
		}
		for i, p := range quick.Points {
			if p != whole.Points[i] {
				t.Fatalf("%v: point %d is %v, and %v in the whole", s, i, p.Name(), whole.Points[i].Name())
			}
		}
	}
}

// TestSeeds: further seeds follow the whole job. Main points have each seed once, under names that do not depend on the choice of
// experiments. So a later run with more seeds or experiments measures nothing twice.
func TestSeeds(t *testing.T) {
	for _, s := range Setups() {
		whole, ten := Job(s, Points{}), Job(s, Points{Seeds: 10})
		if err := ten.Validate(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ten.Points[:len(whole.Points)], whole.Points) {
			t.Errorf("%v: the job of ten seeds does not begin with that of one", s)
		}
		seeds := map[operands][]uint64{}
		for _, p := range ten.Points {
			seeds[operandsOf(p)] = append(seeds[operandsOf(p)], p.Seed)
		}
		for _, e := range experiments {
			main := slices.Clone(e.Main(s.Type))
			for _, p := range e.in(s) {
				if have := len(seeds[operandsOf(p)]); slices.Contains(main, p.At) && have != 10 {
					t.Errorf("%v: %s is drawn from %d seeds", s, p.Name(), have)
				}
				main = slices.DeleteFunc(main, func(x float64) bool { return x == p.At })
			}
			if len(main) > 0 && e.in(s) != nil {
				t.Errorf("%v: %s has no points at %v", s, e.ID, main)
			}
		}
		for o, list := range seeds {
			slices.Sort(list)
			if n := len(slices.Compact(list)); n != 1 && n != 10 || n < len(seeds[o]) {
				t.Errorf("%v: %v from the seeds %v", s, o, list)
			}
		}
		for _, choice := range []Points{{Seeds: 2}, {Most: Quick, Seeds: 3}, {Experiments: []string{"4a", "6b"}, Seeds: 2}, {Experiments: []string{"5d"}}} {
			some := Job(s, choice).Points
			for _, p := range some {
				if !slices.Contains(ten.Points, p) {
					t.Errorf("%v: %+v: %s is not in the whole", s, choice, p.Name())
				}
			}
			if n := len(some); choice.Experiments != nil && (n < 5 || n > 25) {
				t.Errorf("%v: %+v: %d points", s, choice, n)
			}
		}
	}
}

func TestByHalves(t *testing.T) {
	for n, want := range [][]int{nil, {0}, {0, 1}, {0, 2, 1}, {0, 3, 1, 2}, {0, 4, 2, 1, 3}, {0, 5, 2, 1, 3, 4}, {0, 6, 3, 1, 4, 2, 5}} {
		if got := byHalves(n); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}

// TestWeightsAlone: x is the same at every point, and w has the pattern of A.
func TestWeightsAlone(t *testing.T) {
	for _, s := range Setups() {
		if s.Change != experiment.Weights {
			continue
		}
		for _, e := range experiments {
			if points := e.in(s); (points == nil) != e.Apart {
				t.Errorf("%v: %s has %d points", s, e.ID, len(points))
			}
			for i, p := range e.in(s) {
				if p.W != e.Points(s.Type)[i].A {
					t.Errorf("%v: %s draws w from %v", s, p.Name(), p.W)
				}
			}
		}
	}
}
