package search_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestBetterPlansAreWhole: every plan that Better gets can be applied and is better than the earlier ones. The last
// one is the returned plan.
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
				t.Errorf("%s: a better plan has energy %g, an earlier one %g", name, e, energy)
			} else {
				energy = e
			}
			testplan.Applied(t, m, in, p)
			if diff := cmp.Diff(read.Steps, p.Steps); diff != "" && string(js) == string(plans[len(plans)-1]) {
				t.Errorf("%s: the last plan differs from the returned plan: (-made +last)\n%s", name, diff)
			}
		}
		if !slices.ContainsFunc(made.Steps, func(s *plan.Step) bool { return s.Pass == "prune" }) {
			t.Errorf("%s: no input is pruned, so the test is too weak", name)
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
