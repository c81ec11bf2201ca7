package card

import (
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/gemm/collective"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// Documents lists, by command, a value of each type that --json may print. The schemas are generated from these
// types. A document is of one of a command's types.
var Documents = map[string][]any{
	"calibrate": {calibrateJSON{}, calibrateShortJSON{}, componentsJSON{}},
	"measure":   {measuredDocument{}, serve.Result{}, collective.Result{}},
	"pattern":   {patternJSON{}},
	"predict":   {predictDocument{}},
	"profile":   {profileDocument{}, overTimeDocument{}},
	"reproduce": {paper.Report{}},
	"sweep":     {sweep.Result{}, sweep.DryRun{}},
}
