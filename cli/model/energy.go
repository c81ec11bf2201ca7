package model

import (
	"fmt"
	"io"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
)

// ratioChange formats a ratio for a table; "–" if it is unknown.
func ratioChange(r *predict.Ratio) string {
	if r.Known() == nil {
		return "–"
	}
	return term.Change(r.Relative)
}

// printRatio prints a prediction as a sentence.
func printRatio(w io.Writer, r *predict.Ratio, load cost.Workload, role cost.Role) {
	fmt.Fprint(w, term.Wrap(fmt.Sprintf("energy for %s, weights %s: %s predicted, between %s and %s (%s)", load, role,
		term.Change(r.Relative), term.Change(r.Interval[0]), term.Change(r.Interval[1]), r.Calibration), "", "  ", term.Width))
}
