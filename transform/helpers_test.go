package transform_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Short names for what every test here needs.
type tb = testmodel.TB

var (
	ok        = testmodel.OK
	wantError = testmodel.WantError
	config    = testmodel.Config
	folder    = testmodel.Folder
	open      = testmodel.Open
	tiny      = testmodel.Tiny
	edit      = testmodel.Edit
	files     = testmodel.Files
	sameFiles = testmodel.SameFiles
	layoutOf  = testmodel.LayoutOf
	tensorOf  = testmodel.TensorOf
	values    = testmodel.Values
	formatOf  = testmodel.FormatOf
)

func choices(t tb, list string) []pass.Choice {
	t.Helper()
	c, err := transform.ParsePasses(list)
	ok(t, err)
	return c
}

// options for passes, with a budget where least is above 0.
func options(t tb, passes string, least float64) transform.Options {
	t.Helper()
	o := transform.Options{Cost: testmodel.TogglesCost{}, Workload: cost.Workload{Prefill: 0.5, Decode: 0.5}, Version: "test"}
	if passes != "" {
		o.Passes = choices(t, passes)
	}
	if least > 0 {
		o.Budget.MinSNR = &least
	}
	return o
}

func makePlan(t *testing.T, m *weights.Model, passes string, least float64) *plan.Plan {
	t.Helper()
	p, err := transform.Plan(t.Context(), m, options(t, passes, least))
	ok(t, err)
	return p
}

// applied carries a plan out and returns the new folder.
func applied(t *testing.T, m *weights.Model, p *plan.Plan) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	ok(t, err)
	return out
}

// planOf is a plan of given steps for a model.
func planOf(t tb, m *weights.Model, steps ...*plan.Step) *plan.Plan {
	t.Helper()
	p := &plan.Plan{Version: plan.Version, Tool: "test", DropIn: true, Steps: steps}
	p.Request.Workload.Prefill = 1
	var err error
	p.Model, err = plan.Fingerprint(m)
	ok(t, err)
	if l := layoutOf(t, m); l != nil {
		p.Model.Family = l.Family
	}
	for _, s := range steps {
		if s.Pass == "shift" {
			p.DropIn = p.DropIn && !shifted(t, s).Epilogue
		}
	}
	return p
}

// shifted is the data of a step of the pass shift.
func shifted(t tb, s *plan.Step) pass.Shifted {
	t.Helper()
	d, err := plan.Data[pass.Shifted](s)
	ok(t, err)
	return d
}

// compilerOf steps for a model, without a plan and its checks.
func compilerOf(t tb, m *weights.Model, l *arch.Layout, steps []*plan.Step) *program.Compiler {
	t.Helper()
	rules := map[string]program.Rule{}
	for i, r := range transform.Passes {
		rules[r.Pass.Name] = program.Rule{Rank: i, Symmetry: r.Pass.Symmetry, Compile: r.Pass.Compile, Check: r.Pass.Check}
	}
	c, err := program.NewCompiler(program.CompilerOptions{Weights: quant.Group(m), Layout: l, Rules: rules}, steps)
	ok(t, err)
	return c
}

// run is what a program makes of a weight.
func run(t tb, c *program.Compiler, m *weights.Model, tensor string, steps []*plan.Step) []byte {
	t.Helper()
	w, found := quant.Group(m).Weight(tensor)
	if !found {
		t.Fatalf("no tensor %q", tensor)
	}
	p, err := c.Program(context.Background(), w, steps)
	ok(t, err)
	ok(t, p.CheckExact(context.Background()))
	data := make([]byte, p.Rows*p.RowBytes())
	p.Run(data, 0, p.Rows)
	return data
}

// nothingAt makes sure that neither an output nor its parts exist.
func nothingAt(t tb, out string) {
	t.Helper()
	for _, path := range []string{out, out + ".partial"} {
		if _, err := os.Lstat(path); err == nil {
			t.Fatalf("%s exists", path)
		}
	}
}
