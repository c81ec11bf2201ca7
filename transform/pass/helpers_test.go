package pass_test

import (
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
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
	lossy    = testplan.Lossy
	result   = testplan.Result
)
