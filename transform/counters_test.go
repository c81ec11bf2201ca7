package transform

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/tally"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// demoModel returns the embedded model with a few of its tokens.
func demoModel(t *testing.T) (*weights.Model, *tokens.File) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	testmodel.OK(t, demo.Write(dir))
	file, err := tokens.Open(tokens.Path(dir))
	testmodel.OK(t, err)
	for i := range file.Parts {
		p := &file.Parts[i]
		p.N, p.T = min(p.N, 8), min(p.T, 64)
		p.Sequences = p.Sequences[:p.N]
		for k := range p.Sequences {
			p.Sequences[k] = p.Sequences[k][:p.T]
		}
	}
	return testmodel.Open(t, dir), file
}

// TestWorkIsDoneOnce: a conversion with a budget of loss does expensive work once.
func TestWorkIsDoneOnce(t *testing.T) {
	m, file := demoModel(t)
	tok, err := NewTokens(m, file, nil, nil, 0)
	testmodel.OK(t, err)
	tok.Dir = filepath.Join(t.TempDir(), "tokens")
	passes, err := ParsePasses("trellis,compensate")
	testmodel.OK(t, err)
	layers := 0
	testmodel.EachLinear(t, m, func(weights.Tensor, int) { layers++ })

	most := 0.02
	var count counters
	var work tally.Tally
	var curves sync.Once
	var factors, programs, passesOfModel int
	o := ConvertOptions{Options: Options{Passes: passes, Budget: pass.Budget{MaxLoss: &most}, Tokens: tok, Cost: testmodel.TogglesCost{},
		Workload: cost.Workload{Prefill: 1}, count: &count, Progress: func(e Event) {
			if e.Stage == "sensitivities" { // the curves are done
				curves.Do(func() {
					factors, programs, passesOfModel = int(count.Factors.Load()), int(count.Programs.Load()), work.Counts()["forward.Pass"]
				})
			}
		}}}
	c, err := Convert(tally.With(t.Context(), &work), m, filepath.Join(t.TempDir(), "out"), o)
	testmodel.OK(t, err)
	if c.Plan.Search.Best() == nil || c.Loss == nil {
		t.Fatalf("the search found no plan: %+v, loss %+v", c.Plan.Search, c.Loss)
	}
	if count.resolved != 0 || count.fingerprints != 0 {
		t.Errorf("the model was resolved %d times and its fingerprint taken %d times, in addition to NewTokens", count.resolved, count.fingerprints)
	}
	if count.outChecks != 1 || count.heldPasses != 1 {
		t.Errorf("the output folder was checked %d times, and the model run %d times over held-out tokens; want 1 each", count.outChecks, count.heldPasses)
	}
	if want := 2; passesOfModel != want { // over the fitting tokens and the held-out tokens
		t.Errorf("the model was run %d times before the sensitivities, want %d", passesOfModel, want)
	}
	if want := 3 * layers; factors != want { // one for each damping
		t.Errorf("Hessians were factored %d times for the curves of %d layers, want %d", factors, layers, want)
	}
	if want := (1 + 3*len(pass.Lambdas())) * layers; programs != want { // the unchanged layer, and every point of its curve
		t.Errorf("%d programs were compiled for the curves of %d layers, want %d", programs, layers, want)
	}
	all, counted := work.Counts()["rounding.NewFactor"], int(count.Factors.Load())
	if counted != all {
		t.Errorf("%d factors are counted of %d", counted, all)
	}
}

// TestProgramsAreCompiledOnce: a pass that rounds every value alone compiles two programs for a layer, one before the
// pass and one with it. The second program writes the result. Other weights have one program.
func TestProgramsAreCompiledOnce(t *testing.T) {
	m, _ := demoModel(t)
	layers := 0
	testmodel.EachLinear(t, m, func(weights.Tensor, int) { layers++ })
	for _, list := range []string{"round=4", "trellis=0.01"} {
		passes, err := ParsePasses(list)
		testmodel.OK(t, err)
		var count counters
		o := ConvertOptions{Options: Options{Passes: passes, Cost: testmodel.TogglesCost{}, count: &count}}
		c, err := Convert(t.Context(), m, filepath.Join(t.TempDir(), "out"), o)
		testmodel.OK(t, err)
		if count.resolved != 1 || count.fingerprints != 1 || count.outChecks != 1 {
			t.Errorf("%s: the model was resolved %d times, its fingerprint taken %d times, the output folder checked %d times; want 1 each",
				list, count.resolved, count.fingerprints, count.outChecks)
		}
		if len(c.Plan.Steps) != layers {
			t.Errorf("%s: %d steps for %d layers", list, len(c.Plan.Steps), layers)
		}
		if got, most := int(count.Programs.Load()), len(m.Infos())+layers; got > most {
			t.Errorf("%s: %d programs were compiled for %d weights with %d layers; want at most %d", list, got, len(m.Infos()), layers, most)
		}
	}
}
