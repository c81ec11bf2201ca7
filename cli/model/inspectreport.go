package model

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// print writes the report, with a row for each kind of tensor or for each tensor.
func (r inspectJSON) print(w io.Writer, each bool) {
	family := ""
	if r.Family != "" {
		family = "family " + r.Family + ", "
	}
	fmt.Fprintf(w, "%s: %s%s, %s, %s\n", printable.Quote(r.Model), family, term.Plural(r.Total.Tensors, "tensor", "tensors"),
		term.Plural(r.Elements(), "weight", "weights"), term.Size(r.Total.Bytes))
	if r.Note != "" {
		term.Remark(w, "note", r.Note)
	}
	if len(r.Tensors) == 0 {
		return
	}
	fmt.Fprintln(w)
	r.table(each).Print(w)
	fmt.Fprintln(w)
	term.Remark(w, "toggles", "bits per value that differ from the value in the previous row (rows) or from the previous value "+
		"in the file (memory)")
	term.Remark(w, "ones", "set bits per value")
	if len(r.Weights) > 0 {
		term.Remark(w, "quantised weights", "toggle rows, ones and zeros describe the matrix that the tensor cores read: FP8 and INT8 codes "+
			"as stored, other codes as BF16 values. Toggle memory describes the stored codes")
	}
	term.Remark(w, "energy", "predicted energy of matrix products with these weights, relative to random normal weights")
	if c := r.Ceiling; c != nil {
		term.Remark(w, "ceiling", fmt.Sprintf("all-zero weights are predicted to change the energy of this model's linear layers by %s (95 %%: %s … %s) for %s (%s); no "+
			"conversion is predicted to save more", term.Change(c.Relative), term.Signed(100*(c.Interval[0]-1), 1), term.Signed(100*(c.Interval[1]-1), 1),
			products(r.workload, r.role, r.Kernels), c.Calibration))
	}
	printKernels(w, r.Kernels)
	printCoverage(w, r.Coverage)
	if r.NotWorthIt != "" {
		term.Remark(w, "not worth it", r.NotWorthIt)
	}
	if r.Formats != "" {
		term.Remark(w, "format", r.Formats)
	}
	printQuantised(w, r.Quantised, "")
	untouched(w, r.Untouched)
	for _, b := range r.Blocked {
		term.Remark(w, "blocked", b.String())
	}
	printAdapter(w, r.Adapter)
	if r.Total.NaN+r.Total.Inf > 0 {
		term.Remark(w, "warning", fmt.Sprintf("the weights contain %s and %s", term.Plural(int(r.Total.NaN), "NaN", "NaNs"),
			term.Plural(int(r.Total.Inf), "infinity", "infinities")))
	}
	if r.Hint != "" {
		term.Remark(w, "hint", r.Hint)
	}
}

// untouched prints the tensors that are not part of the family.
func untouched(w io.Writer, list []arch.UnclaimedGroup) {
	if len(list) == 0 {
		return
	}
	var names []string
	for i, s := range list {
		if i == 8 {
			names = append(names, term.Plural(len(list)-i, "other", "others"))
			break
		}
		names = append(names, s.String())
	}
	term.Remark(w, "untouched", "no conversion changes these tensors, because the model's family does not have them: "+strings.Join(names, ", "))
}

func printAdapter(w io.Writer, a *inspect.Adapter) {
	if a == nil {
		return
	}
	text := fmt.Sprintf("%s, %s", a.File, term.Plural(a.Tensors, "tensor", "tensors"))
	switch {
	case a.Problem != "":
		text += "; passes that move weights are refused, because the adapter cannot be converted with the model: " + a.Problem
	case a.Changes > 0:
		text += "; the adapter changes " + term.Plural(a.Changes, "tensor", "tensors") + " of the model, and is converted with the model"
	}
	term.Remark(w, "adapter", text)
}

// table has a row for each kind of tensor, or for each tensor.
func (r inspectJSON) table(each bool) *term.Table {
	values := []string{"dtype", "weights", "toggle\nrows", "toggle\nmemory", "ones", "zeros", "energy"}
	if each {
		tab := term.NewTable(append([]string{"tensor"}, values...)...)
		tab.Whole = true
		for _, k := range r.Each() {
			tab.Add(append([]string{k.Name}, inspectCells(k)...)...)
		}
		return tab
	}
	kinds := r.Kinds()
	slices.SortFunc(kinds, func(a, b inspect.Kind) int { return strings.Compare(a.Name, b.Name) })
	tab := term.NewTable(append([]string{"tensors", "n"}, values...)...)
	for _, k := range kinds {
		tab.Add(append([]string{k.Name, term.Count(k.Tensors)}, inspectCells(k)...)...)
	}
	return tab
}

func inspectCells(k inspect.Kind) []string {
	return []string{k.DType, term.Count(k.Elements), number("%.2f", k.RowToggles), number("%.2f", k.MemoryToggles),
		number("%.2f", k.Ones), number("%.1f %%", 100*k.Zeros), number("%.3f", k.Relative)}
}
