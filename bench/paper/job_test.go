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
		w := Job(s, 0)
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
		quick, whole := Job(s, Quick), Job(s, 0)
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

func TestByHalves(t *testing.T) {
	for n, want := range [][]int{nil, {0}, {0, 1}, {0, 2, 1}, {0, 3, 1, 2}, {0, 4, 2, 1, 3}, {0, 5, 2, 1, 3, 4}, {0, 6, 3, 1, 4, 2, 5}} {
		if got := byHalves(n); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}

// TestWeightsAlone: x is the same at every point, and w is what A is.
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
