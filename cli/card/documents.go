package card

import (
	"github.com/lowtoggle/lowtoggle/bench/paper"
	"github.com/lowtoggle/lowtoggle/gemm/collective"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// Documents has a value of each type that a command prints with --json, by command: the source of its schema. Of several
// types a document has one.
var Documents = map[string][]any{
	"calibrate": {calibrateJSON{}, calibrateShortJSON{}, componentsJSON{}},
	"measure":   {measuredDocument{}, serve.Result{}, collective.Result{}},
	"predict":   {predictDocument{}},
	"profile":   {profileDocument{}, overTimeDocument{}},
	"reproduce": {paper.Report{}},
	"sweep":     {sweep.Result{}, sweep.DryRun{}},
}
