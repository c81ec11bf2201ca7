package search_test

import (
	"context"
	"math"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// additive is an evaluator in which layers contribute independently: the lost share of a layer's output power on
// held-out inputs, times a sensitivity.
type additive struct {
	model       *weights.Model
	held        testmodel.Observed
	sensitivity func(layer string) float64
	whole       func(sum float64) float64 // divergence for the sum over all layers; nil: the sum itself
	interval    func(loss float64) [2]float64
	layer       func(name string) error // called before each single layer; may be nil
	trial       func() error            // called after each whole model; may be nil
	layers      int                     // number of single-layer evaluations
	trials      int
}

func evaluatorOf(t *testing.T, m *weights.Model, in *testmodel.Hessians) *additive {
	return &additive{model: m, held: in.HeldOut, sensitivity: func(string) float64 { return 0.1 }}
}

// nats returns the divergence of a layer; 0 for a layer that changed leaves out.
func (e *additive) nats(ctx context.Context, x weights.Tensor, outAxis int, changed search.Values) (nats float64, known bool, err error) {
	v, err := changed.Tensor(ctx, x.Name)
	if v == nil || err != nil {
		return 0, false, err
	}
	_, cols := x.Matrix()
	after := testmodel.Matrix(x.DType, cols, v)
	if string(after.Data) == string(x.Data) {
		return 0, true, nil
	}
	share := testmodel.Lost(x, after, outAxis, e.held[x.Name])
	if math.IsNaN(share) { // of an output without any power
		share = 0
	}
	return e.sensitivity(x.Name) * share, true, nil
}

func (e *additive) each(fn func(x weights.Tensor, outAxis int) error) error {
	layout, err := arch.ResolveIfKnown(e.model, nil)
	for _, info := range e.model.Infos() {
		if err == nil && layout.IsLinear(info) {
			x, _ := e.model.Tensor(info.Name)
			err = fn(x, layout.Claims[info.Name].OutAxis)
		}
	}
	return err
}

func (e *additive) PerLayer(ctx context.Context, _, changed search.Values, done func(string, float64) error) error {
	return e.each(func(x weights.Tensor, outAxis int) error {
		if e.layer != nil {
			if err := e.layer(x.Name); err != nil {
				return err
			}
		}
		nats, known, err := e.nats(ctx, x, outAxis, changed)
		if err != nil || !known {
			return err
		}
		e.layers++
		return done(x.Name, nats)
	})
}

func (e *additive) WholeModel(ctx context.Context, changed search.Values) (divergence, loss float64, interval [2]float64, err error) {
	sum := 0.0
	err = e.each(func(x weights.Tensor, outAxis int) error {
		nats, _, err := e.nats(ctx, x, outAxis, changed)
		sum += nats
		return err
	})
	if e.whole != nil {
		sum = e.whole(sum)
	}
	interval = [2]float64{math.Inf(-1), math.Inf(1)} // as for a single sequence
	if e.interval != nil {
		interval = e.interval(sum)
	}
	e.trials++
	if e.trial != nil && err == nil {
		err = e.trial()
	}
	return sum, sum, interval, err
}

// quick is the list of passes for tests in which pruning and dampings do not matter.
const quick = "trellis,compensate=0.01"

// budgetOf returns the options of a search with a budget in nats per token.
func budgetOf(t testmodel.TB, passes string, most float64, in program.Hessians, e search.Evaluator) transform.Options {
	o := testplan.Options(t, passes, 0)
	o.Budget.MaxLoss, o.Hessians, o.Search.Evaluator = &most, in, e
	return o
}

// found makes a plan by a search, and checks the search's rules.
func found(t *testing.T, m *weights.Model, o transform.Options) *plan.Plan {
	t.Helper()
	p, err := transform.Plan(t.Context(), m, o)
	testmodel.OK(t, err)
	if p.Search == nil || p.Search.Budget != search.Margin**o.Budget.MaxLoss {
		t.Fatalf("the search's record is %+v", p.Search)
	}
	if best := p.Search.Best(); best != nil && (best.Divergence > p.Search.Budget || best.Interval != nil && best.Interval[1] > *o.Budget.MaxLoss) {
		t.Errorf("kept %+v of a budget of %g", best, *o.Budget.MaxLoss)
	}
	js := testplan.Encoded(t, p)
	again, err := plan.Decode(js)
	testmodel.OK(t, err)
	if string(testplan.Encoded(t, again)) != string(js) {
		t.Error("writing and reading changes the plan")
	}
	return p
}
