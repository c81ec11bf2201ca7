package measure

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Every duty is a separate comparison of the same candidates. At the cap the times differ, and below the cap they do not. Energy
// without the gaps is the planted energy of the simulated card.
func TestDuties(t *testing.T) {
	o := power.DefaultSim()
	o.Leakage, o.Cap = 0, 500
	base, variants := pair()
	for _, variants[0].Apart = range []bool{false, true} {
		r, err := Compare(t.Context(), Simulated(o), base, variants, Options{Duties: []float64{1, 0.4}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.AtDuty) != 1 || r.Pacing.Duty != 1 || r.AtDuty[0].Pacing.Duty != 0.4 || r.AtDuty[0].AtDuty != nil {
			t.Fatalf("%d further duties, %+v", len(r.AtDuty), r.Pacing)
		}
		below := r.AtDuty[0]
		truth := simStill / (simStill + simToggling*naiveToggling(base.Products[0].W))
		if v := r.Variants[0]; !*r.Baseline.Capped || v.RelativeTime > 0.95 {
			t.Errorf("at the cap: capped %v, time %v", *r.Baseline.Capped, v.RelativeTime)
		}
		if v := below.Variants[0]; *below.Baseline.Capped || !contains(v.Interval, truth) || !contains(v.TimeInterval, 1) {
			t.Errorf("below the cap: capped %v, energy %v, time %v, want %v and 1", *below.Baseline.Capped, v.Interval, v.TimeInterval, truth)
		}
		if below.Operations != r.Operations || below.Teraflops < 1.05*r.Teraflops || len(below.Products) != 1 {
			t.Errorf("%v TFLOP/s at the cap, %v below, %d products", r.Teraflops, below.Teraflops, len(below.Products))
		}
		if r.SelfTest != below.SelfTest {
			t.Error("two self-tests")
		}
		// A result counts only if the results at all duties count.
		results := &CardResults{Cards: []CardResult{{Result: r}}, asked: 1}
		r.Valid, below.Valid = true, true
		if !results.Holds(false) {
			t.Error("valid results do not hold")
		}
		if below.Valid = false; results.Holds(false) {
			t.Error("an invalid result at a further duty holds")
		}
		if below.Valid, r.Stopped, below.Stopped = true, power.StoppedPrecision, power.StoppedTime; results.Holds(true) {
			t.Error("an imprecise result at a further duty holds")
		}
	}
}

// Models are compared at every duty, kind by kind.
func TestModelDuties(t *testing.T) {
	run := func(valid bool, energy float64, at ...*Result) *Result {
		v := power.Comparison{RelativeEnergy: energy, Interval: []float64{energy - 0.01, energy + 0.01}, RelativeTime: 1}
		r := &Result{Result: &power.Result{Variants: []power.Comparison{v}, Baseline: power.Summary{Joules: 1}, Pacing: &power.Pacing{Duty: 0.4}}, AtDuty: at}
		if r.Valid = valid; !valid {
			r.Invalid = []string{"heat"}
		}
		return r
	}
	p := Phase{Phase: "prefill", Layers: []Row{{Kind: "a", Layers: 2, Run: run(true, 0.9, run(true, 0.95))}, {Kind: "b", Layers: 1, Identical: true}},
		Total: &Row{Layers: 3, Run: run(true, 0.8, run(false, 0.85))}}
	at := p.AtDuty(0)
	if at == nil || at.Phase != "prefill" || at.Layers[0].Relative != 0.95 || at.Layers[0].Layers != 2 || !at.Layers[1].Identical || at.Total.Relative != 0.85 {
		t.Errorf("%+v", at)
	}
	if p.AtDuty(1) != nil {
		t.Error("a duty that was not measured")
	}
	e := &ModelEnergy{Phases: []Phase{p}}
	names, runs := e.totals("")
	if got := InvalidReasons(names, runs); len(got) != 1 || !strings.HasPrefix(got[0], "prefill at a duty of 0.4: heat") {
		t.Errorf("%q", got)
	}
	p.TooLarge, p.Total = true, nil
	p.Layers = p.Layers[:1]
	if at := p.AtDuty(0); at.Total == nil || at.Total.Relative != 0.95 {
		t.Errorf("the sum of rows: %+v", at.Total)
	}
}
