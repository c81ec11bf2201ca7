package search_test

import (
	"context"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/testdevice"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// faulty is a record whose reads and writes can fail.
type faulty struct {
	search.Record
	faults *testmodel.Faults
}

func (r faulty) Load(name string, into any) (bool, error) {
	if err := r.faults.Next(); err != nil {
		return false, err
	}
	return r.Record.Load(name, into)
}

func (r faulty) Save(name string, from any) error {
	if err := r.faults.Next(); err != nil {
		return err
	}
	return r.Record.Save(name, from)
}

// TestFaultsAreTold: a failure of the evaluator, the record, a Hessian or a prediction, and a check of the context that fails, end
// the search with their error.
func TestFaultsAreTold(t *testing.T) {
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testplan.Narrow), synth.Options{Seed: 8}))
	in := testmodel.HessiansOf(t, m)
	testmodel.EachFault(t, func(ctx context.Context, f *testmodel.Faults) error {
		e := evaluatorOf(t, m, in)
		e.layer, e.trial = func(string) error { return f.Next() }, f.Next
		o := budgetOf(t, quick, 0.004, testmodel.FaultyHessians{Hessians: in, Faults: f}, e)
		o.Selection = plan.Selection{Only: []string{"re:.*(down|v)_proj"}}
		o.Cost, o.Workers, o.Search.Time = testmodel.FaultyCost{Faults: f}, 1, time.Hour
		o.Search.Record = faulty{search.Folder{Dir: t.TempDir(), Key: "a search"}, f}
		o.Better = func(*plan.Plan) error { return f.Next() }
		_, err := transform.Plan(ctx, m, o)
		return err
	})
	testplan.FaultsAreTold(t, plan.Selection{Only: []string{"re:.*(up|gate)_proj"}},
		testplan.Frozen{Model: "fbgemm", Passes: "scales,round", MinSNR: 25},
		testplan.Frozen{Model: "llama-tiny", Fields: testmodel.QuantisedShape, Passes: "scales,round=1", Format: "nvfp4"},
		testplan.Frozen{Model: "awq", Passes: "round=1", MinSNR: 2, Tokens: true},
	)
}

// TestDevice: a search whose layers a device rounds finds the plan of the CPU. The device rounds the lambdas of a layer together.
func TestDevice(t *testing.T) {
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testplan.Narrow), synth.Options{Seed: 8}))
	in := testmodel.HessiansOf(t, m)
	passes := "prune,trellis,compensate=0.01"
	want := testplan.Encoded(t, found(t, m, budgetOf(t, passes, 0.01, in, evaluatorOf(t, m, in))))
	card := testdevice.New()
	got := testplan.Encoded(t, found(t, m, budgetOf(t, passes, 0.01, testdevice.Hessians{Hessians: in, Rounder: card}, evaluatorOf(t, m, in))))
	if string(got) != string(want) {
		t.Errorf("on a device:\n%s\non the CPU:\n%s", got, want)
	}
	if card.Rounds == 0 || card.Powers == 0 || card.Together < 10 {
		t.Errorf("the device rounded %d times, at most %d choosers together, and computed powers %d times", card.Rounds, card.Together, card.Powers)
	}
}
