package transform_test

import (
	"context"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Short names for functions that all tests here use.
type tb = testmodel.TB

var (
	ok        = testmodel.OK
	wantError = testmodel.WantError
	config    = testmodel.Config
	folder    = testmodel.Folder
	open      = testmodel.Open
	tiny      = testmodel.Tiny
	edit      = testmodel.Edit
	alter     = testmodel.Alter
	files     = testmodel.Files
	sameFiles = testmodel.SameFiles
	layoutOf  = testmodel.LayoutOf
	tensorOf  = testmodel.TensorOf
	values    = testmodel.Values
	formatOf  = testmodel.FormatOf
)

var (
	options  = testplan.Options
	makePlan = testplan.Make
	planOf   = testplan.Of
)

// applied carries a plan out and returns the new folder.
func applied(t *testing.T, m *weights.Model, p *plan.Plan) string {
	t.Helper()
	return testplan.Applied(t, m, nil, p)
}

// compilerOf returns a compiler of steps for a model, without a plan and its checks.
func compilerOf(t tb, m *weights.Model, l *arch.Layout, steps []*plan.Step) *program.Compiler {
	t.Helper()
	return testplan.Compiler(t, m, l, nil, steps)
}

// run returns a weight's bytes after steps.
func run(t tb, c *program.Compiler, m *weights.Model, tensor string, steps []*plan.Step) []byte {
	t.Helper()
	w, found := quant.Group(m, nil).Weight(tensor)
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
