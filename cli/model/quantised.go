package model

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// printQuantised lists the tensors of quantised weights, one line for each format. The text what follows the format's name and describes how the tensors are treated. Names are shortened to their last part; the JSON document has the
// full names.
func printQuantised(w io.Writer, list []quant.Copied, what string) {
	for len(list) > 0 {
		format, parts := list[0].Format, []string{}
		for len(list) > 0 && list[0].Format == format {
			parts = append(parts, fmt.Sprintf("%d × %s (%s)", list[0].Tensors, list[0].Role, strings.Join(endings(list[0].Names), ", ")))
			list = list[1:]
		}
		term.Remark(w, "quantised", format+what+": "+strings.Join(parts, ", "))
	}
}

// copied is the argument what of printQuantised for tensors that a conversion copies.
const copied = ", copied byte for byte"

// endings returns the last parts of names without repetition.
func endings(names []string) (list []string) {
	for _, name := range names {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			list = append(list, name)
		} else if end := "*" + name[i:]; !slices.Contains(list, end) {
			list = append(list, end)
		}
	}
	return list
}

// nothingLeft returns an error with errShort if a plan does nothing because all weights are quantised, or because
// none is.
func nothingLeft(m *weights.Model, p *plan.Plan) error {
	switch {
	case len(p.Steps) == 0 && p.Request.Format == "" && len(p.Quantised) == 0 && transform.OnlyCodes(p.Request.Passes):
		return fmt.Errorf("%w: nothing is left to do: %s changes quantised weights only, and the model has none", exit.ErrShort, strings.Join(p.Request.Passes, ", "))
	case !p.NothingLeft() || missed(p) != nil:
		return nil
	case p.Request.MinSNR != nil && transform.ChangesCodes(m, strings.Join(p.Request.Passes, ",")):
		return fmt.Errorf("%w: with these passes, no change to a quantised weight keeps an output SNR of %g dB: give a smaller --min-snr", exit.ErrShort, *p.Request.MinSNR)
	}
	return fmt.Errorf("%w: nothing is left to do: the weights that these passes could change are quantised, and are copied unchanged; lowtoggle inspect MODEL says which passes apply", exit.ErrShort)
}
