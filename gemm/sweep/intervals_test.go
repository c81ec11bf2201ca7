package sweep

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// visit makes up a visit of so many windows.
func visit(s Setting, joules ...float64) Visit {
	run := &power.Result{Blocks: []power.Block{{Complete: true}}}
	run.Baseline = power.Summary{Name: "original", Seconds: 1, Windows: len(joules)}
	for _, j := range joules {
		run.Baseline.Joules += j / float64(len(joules))
		run.Blocks[0].Windows = append(run.Blocks[0].Windows, power.Window{Load: "original", PerExecution: j, Seconds: 1})
	}
	return Visit{s, &measure.Result{Result: run}}
}

// TestIntervalsHold: whether windows or visits scatter, at least 95 % of the intervals contain the truth.
func TestIntervalsHold(t *testing.T) {
	const runs, windows, scatter = 2000, 4, 0.002
	at, other := Setting{Cap: 700}, Setting{Cap: 500}
	for _, between := range []float64{0, 0.5, 1, 3} { // visits, in the scatter of windows
		rng, held := rand.New(rand.NewPCG(1, 2)), 0
		for range runs {
			r := &Result{Reference: at.Cap}
			for _, s := range []Setting{at, other, at, at} {
				drift := between * scatter * rng.NormFloat64()
				var joules []float64
				for range windows {
					joules = append(joules, math.Exp(drift+scatter*rng.NormFloat64()))
				}
				r.Visits = append(r.Visits, visit(s, joules...))
			}
			all := newResult(Plan{Reference: at}, r.Visits, nil)
			in := all.Points[slices.IndexFunc(all.Points, func(p Point) bool { return p.Setting == other })].Original.Interval
			if in[0] <= 1 && 1 <= in[1] {
				held++
			}
		}
		if share := float64(held) / runs; share < 0.935 {
			t.Errorf("visits that scatter by %v of windows: %.3f of all intervals hold", between, share)
		}
	}
}

// TestScatterIsThatOfKeptWindows: a window outside its bin of execution times is in no mean, so it is in
// no interval.
func TestScatterIsThatOfKeptWindows(t *testing.T) {
	at := Setting{Cap: 700}
	sound := visit(at, 1, 1.01, 0.99, 1)
	odd := visit(at, 1, 1.01, 0.99, 1)
	b := &odd.Run.Blocks[0]
	b.Windows = append(b.Windows, power.Window{Load: "original", PerExecution: 5, Seconds: 4})
	joules := func(w power.Window) float64 { return w.PerExecution }
	mean := func(s power.Summary) float64 { return s.Joules }
	a, c := (&Result{Visits: []Visit{sound}}).scatter(joules, mean), (&Result{Visits: []Visit{odd}}).scatter(joules, mean)
	if a != c || a.window == 0 {
		t.Errorf("%+v, with the odd window %+v", a, c)
	}
}

// TestAsGood: the lowest value is chosen, and settings that do not differ significantly from it are listed.
func TestAsGood(t *testing.T) {
	at := func(watts, energy, half float64) Point {
		return Point{Setting: Setting{Cap: watts}, Original: Figures{RelativeEnergy: energy, RelativeTime: 1,
			Interval: []float64{energy - half, energy + half}, TimeInterval: []float64{1, 1}}}
	}
	r := &Result{Reference: 700, Points: []Point{at(400, 0.8, 0.02), at(500, 0.83, 0.02), at(600, 0.9, 0.02), at(700, 1, 0)}}
	r.choose([]float64{2})
	for _, b := range r.Best {
		if b.Setting.Setting != (Setting{Cap: 400}) || !slices.Equal(b.Setting.AsGood, []Setting{{Cap: 500}}) || b.Both != nil {
			t.Errorf("%+v", b)
		}
	}
}

// TestNotKept: a setting that the card does not keep gives a warning.
func TestNotKept(t *testing.T) {
	clock, capped := 1500.0, true
	for _, c := range []struct {
		s    Setting
		run  power.Summary
		warn bool
	}{
		{Setting{Cap: 400}, power.Summary{Watts: 405}, false},
		{Setting{Cap: 200}, power.Summary{Watts: 260}, true},
		{Setting{Clock: 1500}, power.Summary{Watts: 600, SMClock: &clock}, false},
		{Setting{Clock: 1200}, power.Summary{Watts: 600, SMClock: &clock}, true},
		{Setting{Clock: 1900}, power.Summary{Watts: 700, SMClock: &clock, Capped: &capped}, false},
	} {
		r := &Result{}
		r.warnNotKept(Visit{c.s, &measure.Result{Result: &power.Result{Baseline: c.run}}})
		if (len(r.Warnings) > 0) != c.warn {
			t.Errorf("%v: %v", c.s, r.Warnings)
		}
	}
}
