package profile

import (
	"slices"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

func TestGuide(t *testing.T) {
	us := Seconds(time.Microsecond)
	for each, want := range map[Seconds]Guidance{
		10 * us: {0, 400, 0.05, 5 * us}, 30 * us: {0, 400, 0.05, 5 * us}, 50 * us: {0, 400, 0.05, 5 * us},
		100 * us: {50 * us, 200, 0.05, 10 * us}, 200 * us: {50 * us, 200, 0.05, 10 * us},
		500 * us: {200 * us, 200, 0.02, 10 * us}, 1600 * us: {1000 * us, 200, 0.02, 10 * us},
	} {
		if g := Guide(each.Duration()); g != want {
			t.Errorf("%v: %+v, want %+v", each, g, want)
		}
	}
}

// TestGolden: a run is dropped where either of its two times lies outside its own bin; the warm-up's do not
// matter, nor that at the cap the two differ.
func TestGolden(t *testing.T) {
	run := func(ms ...float64) Timeline {
		p := Timeline{Done: []int{0}, At: []Seconds{0}}
		for i, m := range ms {
			p.Done, p.At = append(p.Done, p.Done[i]+1+i), append(p.At, p.At[i]+stitch.Of(m/1000*float64(1+i)))
		}
		return p
	}
	runs := []Timeline{
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
	if g := Golden([]Timeline{{Done: []int{0}, At: []Seconds{0}}}); g[0] {
		t.Error("a run of nothing is golden")
	}
}
