package model

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// printQuantised prints which tensors of quantised weights are copied, one line for each format. Names are shortened to
// their last part; the JSON has the full names. energies is true if the report has energies, which leave out quantised
// layers.
func printQuantised(w io.Writer, list []quant.Copied, energies bool) {
	if energies && len(list) > 0 {
		term.Remark(w, "note", "energies are those of the unquantised linear layers alone")
	}
	for len(list) > 0 {
		format, parts := list[0].Format, []string{}
		for len(list) > 0 && list[0].Format == format {
			parts = append(parts, fmt.Sprintf("%d × %s (%s)", list[0].Tensors, list[0].Role, strings.Join(endings(list[0].Names), ", ")))
			list = list[1:]
		}
		term.Remark(w, "quantised", fmt.Sprintf("%s, copied byte for byte: %s", format, strings.Join(parts, ", ")))
	}
}

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
