// Package card has the commands that measure or predict energy on a GPU: measure, predict, profile, sweep, calibrate,
// reproduce and pattern, and verify --gpu.
package card

import (
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/gemm/collective"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// Documents lists, by command, a value of each type that --json may print. A document has one of its command's types.
// The schemas are generated from these types.
var Documents = map[string][]any{
	"calibrate": {calibrateJSON{}, calibrateShortJSON{}, componentsJSON{}},
	"measure":   {measuredDocument{}, serve.Result{}, collective.Result{}},
	"pattern":   {patternJSON{}},
	"predict":   {predictDocument{}},
	"profile":   {profileDocument{}, overTimeDocument{}},
	"reproduce": {paper.Report{}},
	"sweep":     {sweep.Result{}, sweep.DryRun{}},
}
