package search_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// additive is an evaluator to which every layer's error counts for itself: the share of its output's power
// that is lost on held inputs, times a sensitivity.
type additive struct {
	model       *weights.Model
	held        testmodel.Observed
	sensitivity func(layer string) float64
	whole       func(sum float64) float64 // what the sum over all layers comes to; nil: itself
	interval    func(loss float64) [2]float64
	layer       func(name string) error // precedes each layer alone; may be nil
	trial       func() error            // follows each whole model; may be nil
	layers      int                     // evaluated alone
	trials      int
}

func evaluatorOf(t *testing.T, m *weights.Model, in *testmodel.Hessians) *additive {
	return &additive{model: m, held: in.HeldOut, sensitivity: func(string) float64 { return 0.1 }}
}

// nats of a layer; nothing is known of one that changed leaves out.
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
	interval = [2]float64{math.Inf(-1), math.Inf(1)} // as of a single sequence
	if e.interval != nil {
		interval = e.interval(sum)
	}
	e.trials++
	if e.trial != nil && err == nil {
		err = e.trial()
	}
	return sum, sum, interval, err
}

// quick is what the tests search with where pruning and dampings do not matter.
const quick = "trellis,compensate=0.01"

// budgetOf are the options of a search for a budget in nats.
func budgetOf(t testmodel.TB, passes string, most float64, in program.Hessians, e search.Evaluator) transform.Options {
	o := testplan.Options(t, passes, 0)
	o.Budget.MaxLoss, o.Hessians, o.Search.Evaluator = &most, in, e
	return o
}

// found makes a plan by a search, which must keep to the rules.
func found(t *testing.T, m *weights.Model, o transform.Options) *plan.Plan {
	t.Helper()
	p, err := transform.Plan(t.Context(), m, o)
	testmodel.OK(t, err)
	if p.Search == nil || p.Search.Budget != search.Margin**o.Budget.MaxLoss {
		t.Fatalf("what was found is %+v", p.Search)
	}
	if best := p.Search.Best(); best != nil && (best.Divergence > p.Search.Budget || best.Interval != nil && best.Interval[1] > *o.Budget.MaxLoss) {
		t.Errorf("kept %+v of a budget of %g", best, *o.Budget.MaxLoss)
	}
	js := testplan.Encoded(t, p)
	again, err := plan.Decode(js)
	testmodel.OK(t, err)
	if string(testplan.Encoded(t, again)) != string(js) {
		t.Error("the plan is another once it was written and read")
	}
	return p
}

// However losses of layers add up, the plan taken diverges by no more than the budget, and by nearly
// that where more is to be had.
func TestSearchSpendsItsBudgetAndNoMore(t *testing.T) {
	if testing.Short() {
		t.Skip("twenty searches")
	}
	wholes := map[string]func(float64) float64{
		"sum":     nil,
		"twice":   func(sum float64) float64 { return 2.1 * sum },
		"less":    func(sum float64) float64 { return sum / 3 },
		"squares": func(sum float64) float64 { return 40 * sum * sum },
		"roots":   func(sum float64) float64 { return 0.05 * math.Sqrt(sum) },
	}
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := testmodel.Tiny(t, name, 0)
		in := testmodel.HessiansOf(t, m)
		record := search.Folder{t.TempDir(), name}
		for how, whole := range wholes {
			for _, most := range []float64{0.002, 0.006} {
				e := evaluatorOf(t, m, in)
				e.whole = whole
				o := budgetOf(t, quick, most, in, e)
				o.Search.Record = renamed{record, how}
				p := found(t, m, o)
				best := p.Search.Best()
				if best == nil || best.Divergence < 0.8*p.Search.Budget {
					t.Errorf("%s, %s, %g nats: spent %+v of %g in %d trials", name, how, most, best, p.Search.Budget, len(p.Search.Trials))
					continue
				}
				// What is written is what was evaluated.
				out := testmodel.Open(t, testplan.Applied(t, m, in, p))
				got, _, _, err := e.WholeModel(t.Context(), testmodel.TensorsOf(out))
				if err != nil || got != best.Divergence {
					t.Errorf("%s, %s: the result diverges by %g (%v), in its trial it did by %g", name, how, got, err, best.Divergence)
				}
				if len(p.Predictions) != 0 && p.Predictions[0].After.Relative >= p.Predictions[0].Before.Relative {
					t.Errorf("%s, %s: %s is predicted to save nothing", name, how, p.Predictions[0].Tensor)
				}
			}
		}
	}
}

// renamed gives trials names of their own and shares everything else.
type renamed struct {
	search.Folder
	trials string
}

func (r renamed) name(name string) string {
	if strings.HasPrefix(name, "trial-") {
		name = r.trials + name
	}
	return name
}

func (r renamed) Load(name string, into any) (bool, error) { return r.Folder.Load(r.name(name), into) }
func (r renamed) Save(name string, from any) error         { return r.Folder.Save(r.name(name), from) }

func TestUncertainLossesKeepTheBudget(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	e := evaluatorOf(t, m, in)
	e.interval = func(loss float64) [2]float64 { // of few tokens
		half := 0.3 * math.Sqrt(loss)
		return [2]float64{loss - half, loss + half}
	}
	const most = 0.02
	p := found(t, m, budgetOf(t, quick, most, in, e))
	best := p.Search.Best()
	if best == nil || best.Interval[1] < 0.8*most || best.Divergence > 0.5*p.Search.Budget {
		t.Errorf("kept %+v of %g nats", best, most)
	}
}

// An error of a layer that matters little is worth more than that of a layer that matters.
func TestLayersThatMatterLessGetCoarser(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	matters := func(layer string) bool {
		return strings.Contains(layer, ".0.") == (strings.Contains(layer, "mlp") || strings.Contains(layer, "v_proj"))
	}
	e := evaluatorOf(t, m, in)
	e.sensitivity = func(layer string) float64 {
		if matters(layer) {
			return 1
		}
		return 1e-3
	}
	out := testmodel.Open(t, testplan.Applied(t, m, in, found(t, m, budgetOf(t, quick, 0.01, in, e))))
	testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
		twin := strings.NewReplacer(".0.", ".1.", ".1.", ".0.").Replace(x.Name)
		if twin == x.Name || matters(x.Name) {
			return
		}
		little := testmodel.Lost(x, testmodel.TensorOf(t, out, x.Name), outAxis, in.HeldOut[x.Name])
		much := testmodel.Lost(testmodel.TensorOf(t, m, twin), testmodel.TensorOf(t, out, twin), outAxis, in.HeldOut[twin])
		if !(little > 10*much) {
			t.Errorf("%s, which matters little, loses %g, %s loses %g", x.Name, little, twin, much)
		}
	})
}

func TestSearchIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	var want []byte
	numbers := []int{1, 5, 2}
	if testing.Short() {
		numbers = numbers[:2]
	}
	for _, workers := range numbers {
		o := budgetOf(t, "reorder,prune,trellis,compensate=0.01", 0.02, in, evaluatorOf(t, m, in))
		o.Workers = workers
		js := testplan.Encoded(t, found(t, m, o))
		if want == nil {
			want = js
		}
		if string(js) != string(want) {
			t.Errorf("%d workers find another plan", workers)
		}
	}
}

// What was found once is not asked for again, for the same budget or another, and makes no difference.
func TestRecordSavesWorkAndChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("six searches")
	}
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	planned := func(most float64, r search.Record) ([]byte, *additive, int) {
		e, energies := evaluatorOf(t, m, in), make(chan int, 1<<20)
		e.whole = func(sum float64) float64 { return 1.7 * sum }
		o := budgetOf(t, quick, most, in, e)
		o.Search.Record = r
		o.Search.Time = time.Hour // for finer choices, too
		o.Cost = testmodel.CostFunc(func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
			energies <- 1
			return testmodel.TogglesCost{}.Energy(ctx, w, role, l)
		})
		return testplan.Encoded(t, found(t, m, o)), e, len(energies)
	}
	layers := 0
	testmodel.EachLinear(t, m, func(weights.Tensor, int) { layers++ })
	record := search.Folder{t.TempDir(), "one search"}
	var shared [][]byte
	for i, most := range []float64{0.01, 0.02, 0.01, 0.02} {
		js, e, energies := planned(most, record)
		shared = append(shared, js)
		if want := []int{layers, 0, 0, 0}[i]; e.layers != want {
			t.Errorf("search %d: %d layers were evaluated, want %d", i, e.layers, want)
		}
		if i >= 2 && (e.trials != 0 || energies != 2*layers) { // those of the outlook
			t.Errorf("search %d: %d whole models were run, and energy was asked for %d times", i, e.trials, energies)
		}
	}
	for i, most := range []float64{0.01, 0.02} {
		alone, _, _ := planned(most, nil)
		if string(alone) != string(shared[i]) || string(shared[i]) != string(shared[i+2]) {
			t.Errorf("%g nats: the record makes a difference", most)
		}
	}
}

// Wherever a search is ended, the next one goes on and comes to the same plan.
func TestInterruptedSearchGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("seven searches")
	}
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	evaluator := func() *additive {
		e := evaluatorOf(t, m, in)
		e.whole = func(sum float64) float64 { return 2 * sum }
		return e
	}
	const most = 0.02
	want := testplan.Encoded(t, found(t, m, budgetOf(t, quick, most, in, evaluator())))
	var ctx context.Context
	var cancel context.CancelFunc
	for name, interrupt := range map[string]func(*additive, *transform.Options){
		"the first trial": func(e *additive, _ *transform.Options) { e.trial = func() error { cancel(); return ctx.Err() } },
		"a layer alone": func(e *additive, _ *transform.Options) {
			e.layer = func(string) error {
				if e.layers == 4 {
					cancel()
				}
				return ctx.Err()
			}
		},
		"the curves": func(_ *additive, o *transform.Options) {
			o.Progress = func(e transform.Event) {
				if e.Stage == "curves" && e.Done == 3 {
					cancel()
				}
			}
		},
	} {
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		record := search.Folder{t.TempDir(), ""}
		e := evaluator()
		o := budgetOf(t, quick, most, in, e)
		o.Search.Record = record
		interrupt(e, &o)
		if _, err := transform.Plan(ctx, m, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: ended with %v", name, err)
		}
		before := e.layers
		e = evaluator()
		o = budgetOf(t, quick, most, in, e)
		o.Search.Record = record
		if string(testplan.Encoded(t, found(t, m, o))) != string(want) {
			t.Errorf("%s: what goes on comes to another plan", name)
		}
		layers := 0
		testmodel.EachLinear(t, m, func(weights.Tensor, int) { layers++ })
		if before+e.layers != layers {
			t.Errorf("%s: %d layers were evaluated, then %d of %d", name, before, e.layers, layers)
		}
	}
}

// When time is over the running trial is the last, and the best plan is taken.
func TestSearchEndsInTime(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	e := evaluatorOf(t, m, in)
	e.whole = func(sum float64) float64 { return sum / 3 }
	o := budgetOf(t, quick, 0.02, in, e)
	o.Search.Time = 1 // nanosecond
	p := found(t, m, o)
	if e.trials != 1 || len(p.Search.Trials) != 1 || p.Search.Best() == nil || len(p.Steps) == 0 {
		t.Errorf("%d trials; found %+v with %d steps", e.trials, p.Search, len(p.Steps))
	}
}

// Every plan that is handed out can be carried out, is better than those before, and the last is the
// one that is made.
func TestBetterPlansAreWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("every plan is carried out")
	}
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := testmodel.Tiny(t, name, 0)
		in := testmodel.HessiansOf(t, m)
		e := evaluatorOf(t, m, in)
		e.whole = func(sum float64) float64 { return sum / 5 }
		o := budgetOf(t, "reorder,prune,trellis,compensate=0.01", 0.05, in, e)
		o.Search.Time = time.Hour
		var plans [][]byte
		o.Better = func(p *plan.Plan) error {
			plans = append(plans, testplan.Encoded(t, p))
			return nil
		}
		made := found(t, m, o)
		read, err := plan.Decode(testplan.Encoded(t, made))
		testmodel.OK(t, err)
		if len(plans) < 2 {
			t.Fatalf("%s: %d plans were handed out", name, len(plans))
		}
		energy := math.Inf(1)
		for _, js := range plans {
			p, err := plan.Decode(js)
			testmodel.OK(t, err)
			if e := p.Search.Best().Energy; e >= energy {
				t.Errorf("%s: a better plan takes %g, one before it %g", name, e, energy)
			} else {
				energy = e
			}
			testplan.Applied(t, m, in, p)
			if diff := cmp.Diff(read.Steps, p.Steps); diff != "" && string(js) == string(plans[len(plans)-1]) {
				t.Errorf("%s: the last plan is not the one that is made: (-made +last)\n%s", name, diff)
			}
		}
		if !slices.ContainsFunc(made.Steps, func(s *plan.Step) bool { return s.Pass == "prune" }) {
			t.Errorf("%s: nothing is pruned: the test tests less than it should", name)
		}
	}
}

// Where nothing keeps the budget nothing is lost, not even where errors do not show on held inputs.
func TestNothingKeepsTheBudget(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	for _, of := range []testmodel.Observed{in.Fitting, in.HeldOut} { // the first inputs are never there
		for _, h := range of {
			for i := range h.Rows {
				for k := range h.Cols {
					if min(i, k) < 5 {
						h.Row(i)[k] = 0
					}
				}
			}
		}
	}
	e := evaluatorOf(t, m, in)
	e.whole = func(sum float64) float64 { return sum + 1 }
	p := found(t, m, budgetOf(t, "prune,"+quick, 0.02, in, e))
	if p.Search.Best() != nil || len(p.Search.Trials) == 0 || len(p.Steps) != 0 {
		t.Errorf("found %+v, and %d steps", p.Search, len(p.Steps))
	}
	out := testmodel.Open(t, testplan.Applied(t, m, in, p))
	testmodel.EachLinear(t, m, func(x weights.Tensor, _ int) {
		if string(testmodel.TensorOf(t, out, x.Name).Data) != string(x.Data) {
			t.Errorf("%s is another", x.Name)
		}
	})
}

// What a pass's arguments ask for is done where the budget allows it, and missed elsewhere.
func TestArgumentsThatTheBudgetDoesNotAllow(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	for most, all := range map[float64]bool{1e-7: false, 9: true} {
		p := found(t, m, budgetOf(t, "round=6,compensate=0.01", most, in, evaluatorOf(t, m, in)))
		steps := plan.ByTensor(p.Steps)
		for _, o := range p.Predictions {
			done := len(steps[o.Tensor]) == 2
			if missed := strings.Contains(o.Missed, "round=6"); missed == done || done != all {
				t.Errorf("%g nats: %s: %d steps, missed: %q", most, o.Tensor, len(steps[o.Tensor]), o.Missed)
			}
		}
	}
}

func TestShiftsGoIntoBetterPlans(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	o := budgetOf(t, "shift=4/epilogue,grid", 5, in, evaluatorOf(t, m, in))
	given := 0
	o.Better = func(p *plan.Plan) error {
		given++
		again, err := plan.Decode(testplan.Encoded(t, p))
		if err == nil && again.DropIn {
			t.Error("a plan with stored shifts is called drop-in")
		}
		return err
	}
	if found(t, m, o); given == 0 {
		t.Error("no plan was handed out")
	}
}

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
		"outlook": func(e *additive, o *transform.Options) { // what fails at the end, beside others that do not
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

// A divergence that is no number is never kept, nor taken for none.
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
	testmodel.WantError(t, err, "the tokens cannot tell what this model loses")
}

func TestLayersOfZerosAreSearched(t *testing.T) {
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", ""), synth.Options{Seed: 1})
	testmodel.Edit(t, dir, func(info weights.Info, data []byte) {
		if strings.HasSuffix(info.Name, "1.mlp.down_proj.weight") || strings.HasSuffix(info.Name, "0.self_attn.v_proj.weight") {
			clear(data)
		}
	})
	m := testmodel.Open(t, dir)
	in := testmodel.HessiansOf(t, m)
	p := found(t, m, budgetOf(t, "prune,"+quick, 0.02, in, evaluatorOf(t, m, in)))
	if p.Search.Best() == nil {
		t.Errorf("found %+v", p.Search)
	}
	testplan.Applied(t, m, in, p)
}

func TestOptionsOfASearch(t *testing.T) {
	in := &testmodel.Hessians{Name: "tokens"}
	for want, change := range map[string]func(*transform.Options){
		"a loss of 0 nats":                                 func(o *transform.Options) { *o.Budget.MaxLoss = 0 },
		"a loss of NaN nats":                               func(o *transform.Options) { *o.Budget.MaxLoss = math.NaN() },
		"a loss of 10 nats":                                func(o *transform.Options) { *o.Budget.MaxLoss = 10 },
		"a budget of loss needs tokens (--tokens FILE)":    func(o *transform.Options) { o.Search.Evaluator = nil },
		"weighs errors by the layers' inputs: give tokens": func(o *transform.Options) { o.Hessians = nil },
		"loss or of output SNR, not both":                  func(o *transform.Options) { o.Budget.MinSNR = new(float64) },
		"needs a pass that can spend it, such as ":         func(o *transform.Options) { o.Passes = testplan.Passes(t, "scale,reorder,compensate") },
		"trellis needs an argument (":                      func(o *transform.Options) { o.Budget.MaxLoss = nil },
	} {
		o := budgetOf(t, quick, 0.01, in, &additive{})
		testmodel.OK(t, o.Validate())
		change(&o)
		testmodel.WantError(t, o.Validate(), want)
	}
	// Inputs that no pass looks at are none that the plan needs.
	m := testmodel.Tiny(t, "llama-tiny", 0)
	for passes, needs := range map[string]bool{"grid=4": false, "round=3,scale": false, "grid=4,compensate": true, "trellis=0.01": true} {
		p := testplan.Weighed(t, m, testmodel.HessiansOf(t, m), passes)
		if (p.Request.Hessians != "") != needs {
			t.Errorf("%s: the plan's inputs are %q", passes, p.Request.Hessians)
		}
		if !needs {
			_, err := transform.Apply(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
			testmodel.OK(t, err)
		}
	}
}
