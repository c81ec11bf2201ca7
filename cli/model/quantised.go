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

// printQuantised lists the tensors of quantised weights, one line for each format. what follows the format's name and
// says what happens to the tensors. Names are shortened to their last part; the JSON document has the full names.
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

// nothingLeft returns an error with [exit.ErrShort] if a plan changes nothing because all weights are quantised or
// excluded, or because none is quantised.
func nothingLeft(m *weights.Model, p *plan.Plan) error {
	linear, excluded := excludedLayers(p)
	switch {
	case len(p.Steps) == 0 && p.Request.Format == "" && len(p.Quantised) == 0 && transform.OnlyCodes(p.Request.Passes):
		change := "changes"
		if len(p.Request.Passes) > 1 {
			change = "change"
		}
		return fmt.Errorf("%w: nothing was changed: %s %s quantised weights only, and the model has none; try other passes", exit.ErrShort, strings.Join(p.Request.Passes, ", "), change)
	case !p.NothingLeft() || missed(p) != nil:
		return nil
	case linear > 0 && excluded == linear:
		return fmt.Errorf("%w: nothing was changed: %s", exit.ErrShort, allExcluded(linear))
	case p.Request.MinSNR != nil && transform.ChangesCodes(m, strings.Join(p.Request.Passes, ",")):
		return fmt.Errorf("%w: with these passes, no change to a quantised weight keeps an output SNR of %g dB: give a smaller --min-snr", exit.ErrShort, *p.Request.MinSNR)
	}
	return fmt.Errorf("%w: nothing was changed: these passes cannot change the quantised weights, or save no energy there; docs/quantised.md lists passes for codes and scales", exit.ErrShort)
}
