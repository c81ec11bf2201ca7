package search_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestRecordSavesWorkAndChangesNothing: recorded measurements are not repeated, for the same or another budget, and
// do not change the result.
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
		o.Search.Time = time.Hour // with finer choices too
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
		if i >= 2 && (e.trials != 0 || energies != 2*layers) { // those of the final prediction
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

// TestInterruptedSearchGoesOn: after an interrupt at any point, the next search continues and gives the same plan.
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
			t.Errorf("%s: the continued search gives another plan", name)
		}
		layers := 0
		testmodel.EachLinear(t, m, func(weights.Tensor, int) { layers++ })
		if before+e.layers != layers {
			t.Errorf("%s: %d layers were evaluated, then %d of %d", name, before, e.layers, layers)
		}
	}
}
