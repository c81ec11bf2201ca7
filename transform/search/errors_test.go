package search_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/search"
)

func TestSearchPassesErrorsOn(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	broken := errors.New("broken")
	for name, spoil := range map[string]func(*additive, *transform.Options){
		"alone":    func(e *additive, _ *transform.Options) { e.layer = func(string) error { return broken } },
		"together": func(e *additive, _ *transform.Options) { e.trial = func() error { return broken } },
		"better":   func(_ *additive, o *transform.Options) { o.Better = func(*plan.Plan) error { return broken } },
		"load":     func(_ *additive, o *transform.Options) { o.Search.Record = badRecord{loads: broken} },
		"save":     func(_ *additive, o *transform.Options) { o.Search.Record = badRecord{saves: broken} },
		"trials":   func(_ *additive, o *transform.Options) { o.Search.Record = badRecord{saves: broken, only: "trial-"} },
		"layers": func(_ *additive, o *transform.Options) {
			o.Search.Record = badRecord{saves: broken, only: "sensitivities"}
		},
		"energies": func(_ *additive, o *transform.Options) {
			o.Cost = testmodel.CostFunc(func(context.Context, cost.Weights, cost.Role, cost.Workload) (cost.Estimate, error) {
				return cost.Estimate{}, broken
			})
		},
		"outlook": func(e *additive, o *transform.Options) { // an error at the end, besides successful layers
			o.Cost = testmodel.CostFunc(func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
				if e.trials > 0 && w.Rows == 128 {
					return cost.Estimate{}, broken
				}
				return testmodel.TogglesCost{}.Energy(ctx, w, role, l)
			})
		},
	} {
		e := evaluatorOf(t, m, in)
		o := budgetOf(t, quick, 0.02, in, e)
		spoil(e, &o)
		if _, err := transform.Plan(t.Context(), m, o); !errors.Is(err, broken) {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}

// badRecord fails for names that begin with only.
type badRecord struct {
	loads, saves error
	only         string
}

func (b badRecord) Load(string, any) (bool, error) { return false, b.loads }

func (b badRecord) Save(name string, _ any) error {
	if strings.HasPrefix(name, b.only) {
		return b.saves
	}
	return nil
}

// TestDivergencesAreNumbers: a divergence that is not a number is neither kept nor counted as none.
func TestDivergencesAreNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("five searches")
	}
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	for _, nats := range []float64{math.NaN(), math.Inf(1)} {
		e := evaluatorOf(t, m, in)
		e.whole = func(float64) float64 { return nats }
		o := budgetOf(t, quick, 0.02, in, e)
		o.Search.Record = search.Folder{t.TempDir(), ""}
		_, err := transform.Plan(t.Context(), m, o)
		testmodel.WantError(t, err, "running a whole model", "too large for float32")

		e = evaluatorOf(t, m, in)
		e.sensitivity = func(layer string) float64 {
			if strings.HasSuffix(layer, "1.mlp.up_proj.weight") {
				return nats
			}
			return 0.1
		}
		o.Search = search.Options{Evaluator: e}
		_, err = transform.Plan(t.Context(), m, o)
		testmodel.WantError(t, err, "measuring sensitivities", "layers.1.mlp.up_proj.weight", "too large for float32")
	}
	e := evaluatorOf(t, m, in)
	e.sensitivity = func(string) float64 { return 0 }
	_, err := transform.Plan(t.Context(), m, budgetOf(t, quick, 0.02, in, e))
	testmodel.WantError(t, err, "errors of the layers do not change the model's outputs")
}

func TestOptionsOfASearch(t *testing.T) {
	in := &testmodel.Hessians{Name: "tokens"}
	for want, change := range map[string]func(*transform.Options){
		"the budget of loss is 0 nats":             func(o *transform.Options) { *o.Budget.MaxLoss = 0 },
		"the budget of loss is NaN nats":           func(o *transform.Options) { *o.Budget.MaxLoss = math.NaN() },
		"the budget of loss is 10 nats":            func(o *transform.Options) { *o.Budget.MaxLoss = 10 },
		"a budget of loss is measured on tokens":   func(o *transform.Options) { o.Search.Evaluator = nil },
		"needs the layers' inputs: give tokens":    func(o *transform.Options) { o.Hessians = nil },
		"loss or of output SNR, not both":          func(o *transform.Options) { o.Budget.MinSNR = new(float64) },
		"needs a pass that can spend it, such as ": func(o *transform.Options) { o.Passes = testplan.Passes(t, "scale,reorder,compensate") },
		"trellis needs an argument (":              func(o *transform.Options) { o.Budget.MaxLoss = nil },
	} {
		o := budgetOf(t, quick, 0.01, in, &additive{})
		testmodel.OK(t, o.Validate())
		change(&o)
		testmodel.WantError(t, o.Validate(), want)
	}
	// Passes that do not use Hessians do not record them in the plan.
	m := testmodel.Tiny(t, "llama-tiny", 0)
	for passes, needs := range map[string]bool{"grid=4": false, "round=3,scale": false, "grid=4,compensate": true, "trellis=0.01": true} {
		p := testplan.Weighed(t, m, testmodel.HessiansOf(t, m), passes)
		if (p.Request.Hessians != "") != needs {
			t.Errorf("%s: the plan records Hessians %q", passes, p.Request.Hessians)
		}
		if !needs {
			_, err := transform.Apply(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
			testmodel.OK(t, err)
		}
	}
}
