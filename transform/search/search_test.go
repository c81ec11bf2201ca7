package search_test

import (
	"math"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestSearchSpendsItsBudgetAndNoMore: for any law by which losses of layers add up, the plan diverges by at most the
// budget, and by nearly the budget if more savings are available.
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
				// The written model is the evaluated one.
				out := testmodel.Open(t, testplan.Applied(t, m, in, p))
				got, _, _, err := e.WholeModel(t.Context(), testmodel.TensorsOf(out))
				if err != nil || got != best.Divergence {
					t.Errorf("%s, %s: the result diverges by %g (%v), and its trial by %g", name, how, got, err, best.Divergence)
				}
				if len(p.Predictions) != 0 && p.Predictions[0].After.Relative >= p.Predictions[0].Before.Relative {
					t.Errorf("%s, %s: %s is predicted to save nothing", name, how, p.Predictions[0].Tensor)
				}
			}
		}
	}
}

// renamed gives trials separate names and shares all other records.
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
	e.interval = func(loss float64) [2]float64 { // as for few tokens
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

// TestSearchEndsInTime: when the time is over, the running trial is the last, and the best plan is returned.
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

// TestNothingKeepsTheBudget: if no change keeps the budget, nothing is changed, even if errors do not show on
// held-out inputs.
func TestNothingKeepsTheBudget(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	for _, of := range []testmodel.Observed{in.Fitting, in.HeldOut} { // the first inputs are always zero
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

// TestArgumentsThatTheBudgetDoesNotAllow: explicit arguments of a pass are applied in layers where the budget allows
// them, and missed in others.
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
