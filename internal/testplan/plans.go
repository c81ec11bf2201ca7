// Package testplan makes and applies plans for tests of several packages.
package testplan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Passes parses a list such as "reorder,round=4".
func Passes(t testmodel.TB, list string) []pass.Choice {
	t.Helper()
	c, err := transform.ParsePasses(list)
	testmodel.OK(t, err)
	return c
}

// Options returns options for passes, with a budget of output SNR if minSNR is above 0.
func Options(t testmodel.TB, passes string, minSNR float64) transform.Options {
	t.Helper()
	o := transform.Options{Cost: testmodel.TogglesCost{}, Workload: cost.Workload{Prefill: 0.5, Decode: 0.5}, Version: "test"}
	if passes != "" {
		o.Passes = Passes(t, passes)
	}
	if minSNR > 0 {
		o.Budget.MinSNR = &minSNR
	}
	return o
}

// Make makes a plan with these options.
func Make(t testmodel.TB, m *weights.Model, passes string, minSNR float64) *plan.Plan {
	t.Helper()
	return With(t, m, Options(t, passes, minSNR))
}

// With makes a plan with any options.
func With(t testmodel.TB, m *weights.Model, o transform.Options) *plan.Plan {
	t.Helper()
	p, err := transform.Plan(context.Background(), m, o)
	testmodel.OK(t, err)
	return p
}

// Weighed makes a plan that weights errors by Hessians.
func Weighed(t testmodel.TB, m *weights.Model, h program.Hessians, passes string) *plan.Plan {
	t.Helper()
	o := Options(t, passes, 0)
	o.Hessians = h
	return With(t, m, o)
}

// Applied carries out a plan and returns the new folder. h may be nil.
func Applied(t *testing.T, m *weights.Model, h program.Hessians, p *plan.Plan) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Hessians: h})
	testmodel.OK(t, err)
	return out
}

// Interrupted cancels a conversion at its n-th event. It returns false if the conversion ends before.
func Interrupted(t *testing.T, m *weights.Model, p *plan.Plan, out string, n int64, resume bool) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Int64
	_, err := transform.Apply(ctx, m, p, out, transform.ApplyOptions{Resume: resume, Progress: func(transform.Event) {
		if seen.Add(1) == n {
			cancel()
		}
	}})
	if err == nil {
		return false
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	testmodel.WantError(t, err, out+PartialSuffix, "resume")
	if _, err := os.Lstat(out); err == nil {
		t.Fatal("a half output lies under the final name")
	}
	return true
}

// Of returns a plan of the given steps for a model.
func Of(t testmodel.TB, m *weights.Model, steps ...*plan.Step) *plan.Plan {
	t.Helper()
	p := &plan.Plan{Version: plan.Version, Tool: "test", DropIn: true, Steps: steps}
	p.Request.Workload.Prefill = 1
	var err error
	p.Model, err = plan.Fingerprint(m)
	testmodel.OK(t, err)
	if l := testmodel.LayoutOf(t, m); l != nil {
		p.Model.Family = l.Family
	}
	for _, s := range steps {
		by, ok := transform.Passes.Lookup(s.Pass)
		p.DropIn = p.DropIn && !(ok && by.NeedsRuntime != nil && by.NeedsRuntime(s))
	}
	return p
}

// Encoded returns a plan's JSON.
func Encoded(t testmodel.TB, p *plan.Plan) []byte {
	t.Helper()
	js, err := p.Encode()
	testmodel.OK(t, err)
	return js
}

// PartialSuffix ends the name of an unfinished output.
const PartialSuffix = ".partial"

// NothingAt fails the test if an output or its parts exist.
func NothingAt(t testmodel.TB, out string) {
	t.Helper()
	for _, path := range []string{out, out + PartialSuffix} {
		if _, err := os.Lstat(path); err == nil {
			t.Fatalf("%s exists", path)
		}
	}
}
