package pass_test

import (
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
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
	layoutOf  = testmodel.LayoutOf
	tensorOf  = testmodel.TensorOf
	files     = testmodel.Files
	values    = testmodel.Values
	formatOf  = testmodel.FormatOf
	memory    = testmodel.Memory
	matrix    = testmodel.Matrix

	choices  = testplan.Passes
	options  = testplan.Options
	makePlan = testplan.Make
	alone    = testplan.Alone
	result   = testplan.Result
)

// lossy are a plan's steps of tensors, without what couples the trellis's rows: that goes by places.
func lossy(t tb, p *plan.Plan) (steps []*plan.Step) {
	t.Helper()
	for _, s := range p.Steps {
		if s.Tensor == "" {
			continue
		}
		if s.Pass == pass.Trellis.Name {
			d, err := plan.Data[pass.Price](s)
			ok(t, err)
			d.Rates.Differ, d.Rates.Sign, d.Rates.Run = 0, 0, 0
			s.Data = d
		}
		steps = append(steps, s)
	}
	return steps
}
