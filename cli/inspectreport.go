package cli

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// print shows the report, a row per kind of tensor or per tensor.
func (r *inspectJSON) print(w io.Writer, each bool) {
	family := ""
	if r.Family != "" {
		family = "family " + r.Family + ", "
	}
	fmt.Fprintf(w, "%s: %s%s, %s, %s\n", r.Model, family, term.Plural(r.Total.Tensors, "tensor", "tensors"),
		term.Plural(r.Total.Elements, "weight", "weights"), term.Size(r.Total.Bytes))
	if r.Note != "" {
		term.Remark(w, "note", r.Note)
	}
	if len(r.Tensors) == 0 {
		return
	}
	fmt.Fprintln(w)
	r.table(each).Print(w)
	fmt.Fprintln(w)
	term.Remark(w, "toggles", "bits per value that differ between neighbours, of two rows in the same column and along "+
		"the file; ones: bits that are set")
	term.Remark(w, "energy", "of a product, over that with random weights, predicted")
	if c := r.Ceiling; c != nil {
		term.Remark(w, "the most", fmt.Sprintf("all weights zero would change the energy for %s, weights %s, by %s (%s)",
			r.workload, r.role, term.Change(c.Relative), c.Calibration))
	}
	if r.NotWorthIt != "" {
		term.Remark(w, "not worth it", r.NotWorthIt)
	}
	untouched(w, r.Untouched)
	for _, b := range r.Blocked {
		term.Remark(w, "blocked", b.String())
	}
	r.Adapter.print(w)
	if r.Total.NaN+r.Total.Inf > 0 {
		term.Remark(w, "warning", fmt.Sprintf("not finite: %s, %s", term.Plural(int(r.Total.NaN), "NaN", "NaNs"),
			term.Plural(int(r.Total.Inf), "infinity", "infinities")))
	}
}

// untouched says which tensors stay because no family knows them.
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
	term.Remark(w, "untouched", "no part of the family, and left as they are: "+strings.Join(names, ", "))
}

func (a *inspectAdapter) print(w io.Writer) {
	if a == nil {
		return
	}
	text := fmt.Sprintf("%s, %s", a.File, term.Plural(a.Tensors, "tensor", "tensors"))
	switch {
	case a.Problem != "":
		text += ", cannot follow passes that move weights, which are refused: " + a.Problem
	case a.Changes > 0:
		text += ", changes " + term.Plural(a.Changes, "tensor", "tensors") + " of the model, and follows passes that move them"
	}
	term.Remark(w, "adapter", text)
}

func (r *inspectJSON) table(each bool) *term.Table {
	groups := map[string][]inspectTensor{}
	var order []string
	for _, t := range r.Tensors {
		key := t.Kind
		if each {
			key = t.Name
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t)
	}
	values := []string{"dtype", "weights", "toggle\nrows", "toggle\nmemory", "ones", "zeros", "energy"}
	if each {
		tab := term.NewTable(append([]string{"tensor"}, values...)...)
		tab.Whole = true
		for _, key := range order {
			tab.Add(append([]string{key}, inspectValues(groups[key])...)...)
		}
		return tab
	}
	sort.Strings(order)
	tab := term.NewTable(append([]string{"tensors", "n"}, values...)...)
	for _, key := range order {
		tab.Add(append([]string{key, term.Count(len(groups[key]))}, inspectValues(groups[key])...)...)
	}
	return tab
}

// inspectValues sums up tensors of one kind.
func inspectValues(list []inspectTensor) []string {
	var rows, mem, ones, zeros, rowPairs, memPairs, elements float64
	var energy, layers float64
	weights := 0
	dtype := list[0].DType
	for _, t := range list {
		weights += t.weights
		if t.DType != dtype {
			dtype = "mixed"
		}
		if a := t.Activity; a != nil {
			rows += float64(a.RowToggles.Total())
			mem += float64(a.MemoryToggles.Total())
			ones += float64(a.Ones.Total())
			zeros += float64(a.Zeros)
			rowPairs += float64(a.RowPairs())
			memPairs += float64(a.MemoryPairs())
			elements += float64(a.Elements)
		}
		if t.Predicted != nil {
			energy += float64(t.weights) * t.Predicted.Relative
			layers += float64(t.weights)
		}
	}
	per := func(format string, sum, n float64) string {
		if n == 0 {
			return "–"
		}
		return fmt.Sprintf(format, sum/n)
	}
	return []string{dtype, term.Count(weights), per("%.2f", rows, rowPairs), per("%.2f", mem, memPairs),
		per("%.2f", ones, elements), per("%.1f %%", 100*zeros, elements), per("%.3f", energy, layers)}
}
