package pass_test

import (
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/weights"
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
	layoutOf  = testmodel.LayoutOf
	tensorOf  = testmodel.TensorOf
	files     = testmodel.Files
	values    = testmodel.Values
	formatOf  = testmodel.FormatOf
	memory    = testmodel.Memory
	matrix    = testmodel.Matrix

	options  = testplan.Options
	makePlan = testplan.Make
	alone    = testplan.Alone
	lossy    = testplan.Lossy
	result   = testplan.Result
)

// modelOf returns the input of passes at the beginning of a plan.
func modelOf(t tb, m *weights.Model, passes string) *pass.Model {
	t.Helper()
	o, layout := options(t, passes, 0), layoutOf(t, m)
	return &pass.Model{
		Context: &pass.Context{Workload: o.Workload, Cost: o.Cost, Choices: o.Passes, Workers: 1},
		Dir:     m.Dir, Weights: quant.Group(m, nil), Layout: layout, Note: func(string, ...any) {},
		Compiler: testplan.Compiler(t, m, layout, nil, nil),
	}
}
