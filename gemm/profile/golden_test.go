package profile

import (
	"slices"
	"testing"
	"time"
)

func TestGuide(t *testing.T) {
	us := time.Microsecond
	for each, want := range map[time.Duration]Guidance{
		10 * us: {0, 400, 5 * us, 0.05}, 30 * us: {0, 400, 5 * us, 0.05}, 50 * us: {0, 400, 5 * us, 0.05},
		100 * us: {50 * us, 200, 10 * us, 0.05}, 200 * us: {50 * us, 200, 10 * us, 0.05},
		500 * us: {200 * us, 200, 10 * us, 0.02}, 1600 * us: {1000 * us, 200, 10 * us, 0.02},
	} {
		if g := Guide(each); g != want {
			t.Errorf("%v: %+v, want %+v", each, g, want)
		}
	}
}

// TestGolden: a run is dropped where either of its two times lies outside its own bin; the warm-up's do not
// matter, nor that at the cap the two differ.
func TestGolden(t *testing.T) {
	run := func(ms ...float64) Progress {
		p := Progress{Done: []int{0}, At: []time.Duration{0}}
		for i, m := range ms {
			p.Done, p.At = append(p.Done, p.Done[i]+1+i), append(p.At, p.At[i]+seconds(m/1000*float64(1+i)))
		}
		return p
	}
	runs := []Progress{
		run(2, 1, 1.2, 1.3),
		run(3, 1, 1.2, 1.3),
		run(2, 1.04, 1.2, 1.3), // SSE is slow
		run(2, 1.01, 1.23, 1.31),
		run(2, 1, 1.2, 1.36), // SSP is slow
		run(2.5, 1.005, 1.2, 1.29),
	}
	if got, want := Golden(runs), []bool{true, true, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("golden %v, want %v", got, want)
	}
	if g := Golden(nil); len(g) != 0 {
		t.Errorf("of no runs %v are golden", g)
	}
	if g := Golden([]Progress{{Done: []int{0}, At: []time.Duration{0}}}); g[0] {
		t.Error("a run of nothing is golden")
	}
}
