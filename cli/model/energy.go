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

// printRatio prints a prediction as a sentence, with the kernels that the prediction assumes.
func printRatio(w io.Writer, r *predict.Ratio, load cost.Workload, role cost.Role, kernels []string) {
	fmt.Fprint(w, term.Wrap(fmt.Sprintf("energy of the linear layers, for %s: %s predicted, 95 %% interval %s to %s (calibration %s)", products(load, role, kernels),
		term.Change(r.Relative), term.Change(r.Interval[0]), term.Change(r.Interval[1]), r.Calibration), "", "  ", term.Width))
	printKernels(w, kernels)
}

// products describes the matrix products of a prediction. The role of the weights is left out if kernels determine it,
// as in a model with quantised layers.
func products(load cost.Workload, role cost.Role, kernels []string) string {
	if len(kernels) > 0 {
		return load.String()
	}
	return fmt.Sprintf("%s, weights %s", load, role)
}

// printCoverage prints the share of a model that the predictions cover. If they cover the whole model, c is nil.
func printCoverage(w io.Writer, c *predict.Coverage) {
	if c != nil {
		term.Remark(w, "note", c.String())
	}
}

func printKernels(w io.Writer, kernels []string) {
	for _, k := range kernels {
		term.Remark(w, "kernel", k+" (assumed)")
	}
}
