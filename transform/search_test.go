package transform

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
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// additive is a judge to whom every layer's error counts for itself: the share of its output's power
// that is lost on held inputs, times a sensitivity.
type additive struct {
	model       *weights.Model
	held        observed
	sensitivity func(layer string) float64
	whole       func(sum float64) float64 // what the sum over all layers comes to; nil: itself
	interval    func(loss float64) [2]float64
	layer       func(name string) error // precedes each layer alone; may be nil
	trial       func() error            // follows each whole model; may be nil
	layers      int                     // judged alone
	trials      int
}

func judgeOf(t *testing.T, m *weights.Model, in *fed) *additive {
	return &additive{model: m, held: in.held, sensitivity: func(string) float64 { return 0.1 }}
}

// nats of a layer; nothing is known of one that changed leaves out.
func (j *additive) nats(ctx context.Context, x weights.Tensor, outAxis int, changed Values) (nats float64, known bool, err error) {
	v, err := changed.Tensor(ctx, x.Name)
	if v == nil || err != nil {
		return 0, false, err
	}
	_, cols := x.Matrix()
	after := matrix(x.DType, cols, v)
	if string(after.Data) == string(x.Data) {
		return 0, true, nil
	}
	share := lost(x, after, outAxis, j.held[x.Name])
	if math.IsNaN(share) { // of an output without any power
		share = 0
	}
	return j.sensitivity(x.Name) * share, true, nil
}

func (j *additive) each(fn func(x weights.Tensor, outAxis int) error) error {
	layout, err := arch.ResolveIfKnown(j.model, nil)
	for _, info := range j.model.Infos() {
		if err == nil && layout.IsLinear(info) {
			x, _ := j.model.Tensor(info.Name)
			err = fn(x, layout.Claims[info.Name].OutAxis)
		}
	}
	return err
}

func (j *additive) PerLayer(ctx context.Context, _, changed Values, done func(string, float64) error) error {
	return j.each(func(x weights.Tensor, outAxis int) error {
		if j.layer != nil {
			if err := j.layer(x.Name); err != nil {
				return err
			}
		}
		nats, known, err := j.nats(ctx, x, outAxis, changed)
		if err != nil || !known {
			return err
		}
		j.layers++
		return done(x.Name, nats)
	})
}

func (j *additive) WholeModel(ctx context.Context, changed Values) (divergence, loss float64, interval [2]float64, err error) {
	sum := 0.0
	err = j.each(func(x weights.Tensor, outAxis int) error {
		nats, _, err := j.nats(ctx, x, outAxis, changed)
		sum += nats
		return err
	})
	if j.whole != nil {
		sum = j.whole(sum)
	}
	interval = [2]float64{math.Inf(-1), math.Inf(1)} // as of a single sequence
	if j.interval != nil {
		interval = j.interval(sum)
	}
	j.trials++
	if j.trial != nil && err == nil {
		err = j.trial()
	}
	return sum, sum, interval, err
}

// quick is what the tests search with where pruning and dampings do not matter.
const quick = "trellis,compensate=0.01"

// budgetOf are the options of a search for a budget in nats.
func budgetOf(t tb, passes string, most float64, in Inputs, j Judge) Options {
	o := options(t, passes, 0)
	o.MaxLoss, o.Inputs, o.Search = &most, in, &Search{Judge: j}
	return o
}

// found makes a plan by a search, which must keep to the rules.
func found(t *testing.T, m *weights.Model, o Options) *Plan {
	t.Helper()
	p, err := Make(t.Context(), m, o)
	ok(t, err)
	if p.Found == nil || p.Found.Budget != Margin**o.MaxLoss {
		t.Fatalf("what was found is %+v", p.Found)
	}
	if best := p.Found.Best(); best != nil && (best.Divergence > p.Found.Budget || best.Interval != nil && best.Interval[1] > *o.MaxLoss) {
		t.Errorf("kept %+v of a budget of %g", best, *o.MaxLoss)
	}
	js := encoded(t, p)
	again, err := DecodePlan(js)
	ok(t, err)
	if string(encoded(t, again)) != string(js) {
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
		m := tiny(t, name, 0)
		in := feed(t, m)
		record := Folder{t.TempDir(), name}
		for how, whole := range wholes {
			for _, most := range []float64{0.002, 0.006} {
				j := judgeOf(t, m, in)
				j.whole = whole
				o := budgetOf(t, quick, most, in, j)
				o.Search.Record = renamed{record, how}
				p := found(t, m, o)
				best := p.Found.Best()
				if best == nil || best.Divergence < 0.8*p.Found.Budget {
					t.Errorf("%s, %s, %g nats: spent %+v of %g in %d trials", name, how, most, best, p.Found.Budget, len(p.Found.Trials))
					continue
				}
				// What is written is what was judged.
				out := open(t, appliedWith(t, m, in, p))
				got, _, _, err := j.WholeModel(t.Context(), tensorsOf(out))
				if err != nil || got != best.Divergence {
					t.Errorf("%s, %s: the result diverges by %g (%v), in its trial it did by %g", name, how, got, err, best.Divergence)
				}
				if len(p.Outlook) != 0 && p.Outlook[0].After.Relative >= p.Outlook[0].Before.Relative {
					t.Errorf("%s, %s: %s is predicted to save nothing", name, how, p.Outlook[0].Tensor)
				}
			}
		}
	}
}

// renamed gives trials names of their own and shares everything else.
type renamed struct {
	Folder
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
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	j := judgeOf(t, m, in)
	j.interval = func(loss float64) [2]float64 { // of few tokens
		half := 0.3 * math.Sqrt(loss)
		return [2]float64{loss - half, loss + half}
	}
	const most = 0.02
	p := found(t, m, budgetOf(t, quick, most, in, j))
	best := p.Found.Best()
	if best == nil || best.Interval[1] < 0.8*most || best.Divergence > 0.5*p.Found.Budget {
		t.Errorf("kept %+v of %g nats", best, most)
	}
}

// An error of a layer that matters little is worth more than that of a layer that matters.
func TestLayersThatMatterLessGetCoarser(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	matters := func(layer string) bool {
		return strings.Contains(layer, ".0.") == (strings.Contains(layer, "mlp") || strings.Contains(layer, "v_proj"))
	}
	j := judgeOf(t, m, in)
	j.sensitivity = func(layer string) float64 {
		if matters(layer) {
			return 1
		}
		return 1e-3
	}
	out := open(t, appliedWith(t, m, in, found(t, m, budgetOf(t, quick, 0.01, in, j))))
	linearOf(t, m, func(x weights.Tensor, outAxis int) {
		twin := strings.NewReplacer(".0.", ".1.", ".1.", ".0.").Replace(x.Name)
		if twin == x.Name || matters(x.Name) {
			return
		}
		little := lost(x, tensorOf(t, out, x.Name), outAxis, in.held[x.Name])
		much := lost(tensorOf(t, m, twin), tensorOf(t, out, twin), outAxis, in.held[twin])
		if !(little > 10*much) {
			t.Errorf("%s, which matters little, loses %g, %s loses %g", x.Name, little, twin, much)
		}
	})
}

func TestSearchIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	var want []byte
	numbers := []int{1, 5, 2}
	if testing.Short() {
		numbers = numbers[:2]
	}
	for _, workers := range numbers {
		o := budgetOf(t, "reorder,prune,trellis,compensate=0.01", 0.02, in, judgeOf(t, m, in))
		o.Workers = workers
		js := encoded(t, found(t, m, o))
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
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	plan := func(most float64, r Record) ([]byte, *additive, int) {
		j, energies := judgeOf(t, m, in), make(chan int, 1<<20)
		j.whole = func(sum float64) float64 { return 1.7 * sum }
		o := budgetOf(t, quick, most, in, j)
		o.Search.Record = r
		o.Search.Time = time.Hour // for finer choices, too
		o.Cost = costFunc(func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
			energies <- 1
			return togglesCost{}.Energy(ctx, w, role, l)
		})
		return encoded(t, found(t, m, o)), j, len(energies)
	}
	layers := 0
	linearOf(t, m, func(weights.Tensor, int) { layers++ })
	record := Folder{t.TempDir(), "one search"}
	var shared [][]byte
	for i, most := range []float64{0.01, 0.02, 0.01, 0.02} {
		js, j, energies := plan(most, record)
		shared = append(shared, js)
		if want := []int{layers, 0, 0, 0}[i]; j.layers != want {
			t.Errorf("search %d: %d layers were judged, want %d", i, j.layers, want)
		}
		if i >= 2 && (j.trials != 0 || energies != 2*layers) { // those of the outlook
			t.Errorf("search %d: %d whole models were run, and energy was asked for %d times", i, j.trials, energies)
		}
	}
	for i, most := range []float64{0.01, 0.02} {
		alone, _, _ := plan(most, nil)
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
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	judge := func() *additive {
		j := judgeOf(t, m, in)
		j.whole = func(sum float64) float64 { return 2 * sum }
		return j
	}
	const most = 0.02
	want := encoded(t, found(t, m, budgetOf(t, quick, most, in, judge())))
	var ctx context.Context
	var cancel context.CancelFunc
	for name, interrupt := range map[string]func(*additive, *Options){
		"the first trial": func(j *additive, _ *Options) { j.trial = func() error { cancel(); return ctx.Err() } },
		"a layer alone": func(j *additive, _ *Options) {
			j.layer = func(string) error {
				if j.layers == 4 {
					cancel()
				}
				return ctx.Err()
			}
		},
		"the curves": func(_ *additive, o *Options) {
			o.Progress = func(e Event) {
				if e.Stage == "try" && e.Done == 3 {
					cancel()
				}
			}
		},
	} {
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		record := Folder{t.TempDir(), ""}
		j := judge()
		o := budgetOf(t, quick, most, in, j)
		o.Search.Record = record
		interrupt(j, &o)
		if _, err := Make(ctx, m, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: ended with %v", name, err)
		}
		before := j.layers
		j = judge()
		o = budgetOf(t, quick, most, in, j)
		o.Search.Record = record
		if string(encoded(t, found(t, m, o))) != string(want) {
			t.Errorf("%s: what goes on comes to another plan", name)
		}
		layers := 0
		linearOf(t, m, func(weights.Tensor, int) { layers++ })
		if before+j.layers != layers {
			t.Errorf("%s: %d layers were judged, then %d of %d", name, before, j.layers, layers)
		}
	}
}

// When time is over the running trial is the last, and the best plan is taken.
func TestSearchEndsInTime(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	j := judgeOf(t, m, in)
	j.whole = func(sum float64) float64 { return sum / 3 }
	o := budgetOf(t, quick, 0.02, in, j)
	o.Search.Time = 1 // nanosecond
	p := found(t, m, o)
	if j.trials != 1 || len(p.Found.Trials) != 1 || p.Found.Best() == nil || len(p.Steps) == 0 {
		t.Errorf("%d trials; found %+v with %d steps", j.trials, p.Found, len(p.Steps))
	}
}

// Every plan that is handed out can be carried out, is better than those before, and the last is the
// one that is made.
func TestBetterPlansAreWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("every plan is carried out")
	}
	for _, name := range []string{"llama-tiny", "gpt2-tiny"} {
		m := tiny(t, name, 0)
		in := feed(t, m)
		j := judgeOf(t, m, in)
		j.whole = func(sum float64) float64 { return sum / 5 }
		o := budgetOf(t, "reorder,prune,trellis,compensate=0.01", 0.05, in, j)
		o.Search.Time = time.Hour
		var plans [][]byte
		o.Search.Better = func(p *Plan) error {
			plans = append(plans, encoded(t, p))
			return nil
		}
		made := found(t, m, o)
		if len(plans) < 2 {
			t.Fatalf("%s: %d plans were handed out", name, len(plans))
		}
		energy := math.Inf(1)
		for _, js := range plans {
			p, err := DecodePlan(js)
			ok(t, err)
			if e := p.Found.Best().Energy; e >= energy {
				t.Errorf("%s: a better plan takes %g, one before it %g", name, e, energy)
			} else {
				energy = e
			}
			appliedWith(t, m, in, p)
			if diff := cmp.Diff(made.Steps, p.Steps); diff != "" && string(js) == string(plans[len(plans)-1]) {
				t.Errorf("%s: the last plan is not the one that is made: (-made +last)\n%s", name, diff)
			}
		}
		if !slices.ContainsFunc(made.Steps, func(s *Step) bool { return s.Prune != nil }) {
			t.Errorf("%s: nothing is pruned: the test tests less than it should", name)
		}
	}
}

// Where nothing keeps the budget nothing is lost, not even where errors do not show on held inputs.
func TestNothingKeepsTheBudget(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	for _, of := range []observed{in.moments, in.held} { // the first inputs are never there
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
	j := judgeOf(t, m, in)
	j.whole = func(sum float64) float64 { return sum + 1 }
	p := found(t, m, budgetOf(t, "prune,"+quick, 0.02, in, j))
	if p.Found.Best() != nil || len(p.Found.Trials) == 0 || len(p.Steps) != 0 {
		t.Errorf("found %+v, and %d steps", p.Found, len(p.Steps))
	}
	out := open(t, appliedWith(t, m, in, p))
	linearOf(t, m, func(x weights.Tensor, _ int) {
		if string(tensorOf(t, out, x.Name).Data) != string(x.Data) {
			t.Errorf("%s is another", x.Name)
		}
	})
}

// What a pass's arguments ask for is done where the budget allows it, and missed elsewhere.
func TestArgumentsThatTheBudgetDoesNotAllow(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	for most, all := range map[float64]bool{1e-7: false, 9: true} {
		p := found(t, m, budgetOf(t, "round=6,compensate=0.01", most, in, judgeOf(t, m, in)))
		steps := byTensor(p.Steps)
		for _, o := range p.Outlook {
			done := len(steps[o.Tensor]) == 2
			if missed := strings.Contains(o.Missed, "round=6"); missed == done || done != all {
				t.Errorf("%g nats: %s: %d steps, missed: %q", most, o.Tensor, len(steps[o.Tensor]), o.Missed)
			}
		}
	}
}

func TestShiftsGoIntoBetterPlans(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	o := budgetOf(t, "shift=4/epilogue,grid", 5, in, judgeOf(t, m, in))
	given := 0
	o.Search.Better = func(p *Plan) error {
		given++
		again, err := DecodePlan(encoded(t, p))
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
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	broken := errors.New("broken")
	for name, spoil := range map[string]func(*additive, *Options){
		"alone":    func(j *additive, _ *Options) { j.layer = func(string) error { return broken } },
		"together": func(j *additive, _ *Options) { j.trial = func() error { return broken } },
		"better":   func(_ *additive, o *Options) { o.Search.Better = func(*Plan) error { return broken } },
		"load":     func(_ *additive, o *Options) { o.Search.Record = badRecord{loads: broken} },
		"save":     func(_ *additive, o *Options) { o.Search.Record = badRecord{saves: broken} },
		"trials":   func(_ *additive, o *Options) { o.Search.Record = badRecord{saves: broken, only: "trial-"} },
		"layers":   func(_ *additive, o *Options) { o.Search.Record = badRecord{saves: broken, only: "sensitivities"} },
		"energies": func(_ *additive, o *Options) {
			o.Cost = costFunc(func(context.Context, cost.Weights, cost.Role, cost.Workload) (cost.Estimate, error) {
				return cost.Estimate{}, broken
			})
		},
		"outlook": func(j *additive, o *Options) { // what fails at the end, beside others that do not
			o.Cost = costFunc(func(ctx context.Context, w cost.Weights, role cost.Role, l cost.Workload) (cost.Estimate, error) {
				if j.trials > 0 && w.Rows == 128 {
					return cost.Estimate{}, broken
				}
				return togglesCost{}.Energy(ctx, w, role, l)
			})
		},
	} {
		j := judgeOf(t, m, in)
		o := budgetOf(t, quick, 0.02, in, j)
		spoil(j, &o)
		if _, err := Make(t.Context(), m, o); !errors.Is(err, broken) {
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
	m := tiny(t, "llama-tiny", 0)
	in := feed(t, m)
	for _, nats := range []float64{math.NaN(), math.Inf(1)} {
		j := judgeOf(t, m, in)
		j.whole = func(float64) float64 { return nats }
		o := budgetOf(t, quick, 0.02, in, j)
		o.Search.Record = Folder{t.TempDir(), ""}
		_, err := Make(t.Context(), m, o)
		wantError(t, err, "running a whole model", "too large for float32")

		j = judgeOf(t, m, in)
		j.sensitivity = func(layer string) float64 {
			if strings.HasSuffix(layer, "1.mlp.up_proj.weight") {
				return nats
			}
			return 0.1
		}
		o.Search = &Search{Judge: j}
		_, err = Make(t.Context(), m, o)
		wantError(t, err, "measuring what errors cost", "layers.1.mlp.up_proj.weight", "too large for float32")
	}
	j := judgeOf(t, m, in)
	j.sensitivity = func(string) float64 { return 0 }
	_, err := Make(t.Context(), m, budgetOf(t, quick, 0.02, in, j))
	wantError(t, err, "the tokens cannot judge this model")
}

func TestLayersOfZerosAreSearched(t *testing.T) {
	dir := folder(t, config(t, "llama-tiny", ""), synth.Options{Seed: 1})
	edit(t, dir, func(info weights.Info, data []byte) {
		if strings.HasSuffix(info.Name, "1.mlp.down_proj.weight") || strings.HasSuffix(info.Name, "0.self_attn.v_proj.weight") {
			clear(data)
		}
	})
	m := open(t, dir)
	in := feed(t, m)
	p := found(t, m, budgetOf(t, "prune,"+quick, 0.02, in, judgeOf(t, m, in)))
	if p.Found.Best() == nil {
		t.Errorf("found %+v", p.Found)
	}
	appliedWith(t, m, in, p)
}

func TestOptionsOfASearch(t *testing.T) {
	in := &fed{key: "tokens"}
	for want, change := range map[string]func(*Options){
		"a loss of 0 nats":                         func(o *Options) { *o.MaxLoss = 0 },
		"a loss of NaN nats":                       func(o *Options) { *o.MaxLoss = math.NaN() },
		"a loss of 10 nats":                        func(o *Options) { *o.MaxLoss = 10 },
		"needs tokens to judge by (--tokens FILE)": func(o *Options) { o.Search = nil },
		"a budget of loss needs tokens":            func(o *Options) { o.Search.Judge = nil },
		"what layers are fed with: give tokens":    func(o *Options) { o.Inputs = nil },
		"loss or of signal-to-noise, not both":     func(o *Options) { o.MinSNR = ptr(30) },
		"needs a pass that can spend it, such as ": func(o *Options) { o.Passes = choices(t, "scale,reorder,compensate") },
		"trellis needs an argument (":              func(o *Options) { o.MaxLoss = nil },
	} {
		o := budgetOf(t, quick, 0.01, in, &additive{})
		ok(t, o.Validate())
		change(&o)
		wantError(t, o.Validate(), want)
	}
	// Inputs that no pass looks at are none that the plan needs.
	m := tiny(t, "llama-tiny", 0)
	for passes, needs := range map[string]bool{"grid=4": false, "round=3,scale": false, "grid=4,compensate": true, "trellis=0.01": true} {
		p := planWith(t, m, feed(t, m), passes)
		if (p.Request.Inputs != "") != needs {
			t.Errorf("%s: the plan's inputs are %q", passes, p.Request.Inputs)
		}
		if !needs {
			_, err := Apply(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), ApplyOptions{})
			ok(t, err)
		}
	}
}
