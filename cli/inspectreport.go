package cli

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// print shows the report, a row per kind of tensor or per tensor.
func (r *inspectJSON) print(w io.Writer, each bool) {
	family := ""
	if r.Family != "" {
		family = "family " + r.Family + ", "
	}
	fmt.Fprintf(w, "%s: %s%s, %s, %s\n", r.Model, family, plural(r.Total.Tensors, "tensor", "tensors"),
		plural(r.Total.Elements, "weight", "weights"), size(r.Total.Bytes))
	if r.Note != "" {
		remark(w, "note", r.Note)
	}
	if len(r.Tensors) == 0 {
		return
	}
	fmt.Fprintln(w)
	r.table(each).print(w)
	fmt.Fprintln(w)
	remark(w, "toggles", "bits per value that differ between neighbours, of two rows in the same column and along "+
		"the file; ones: bits that are set")
	remark(w, "energy", "of a product, over that with random weights, predicted")
	if c := r.Ceiling; c != nil {
		remark(w, "the most", fmt.Sprintf("all weights zero would change the energy for %s, weights %s, by %s (%s)",
			r.workload, r.role, percent(c.Relative), c.Calibration))
	}
	if r.NotWorthIt != "" {
		remark(w, "not worth it", r.NotWorthIt)
	}
	untouched(w, r.Untouched)
	for _, b := range r.Blocked {
		remark(w, "blocked", b.String())
	}
	r.Adapter.print(w)
	if r.Total.NaN+r.Total.Inf > 0 {
		remark(w, "warning", fmt.Sprintf("not finite: %s, %s", plural(int(r.Total.NaN), "NaN", "NaNs"),
			plural(int(r.Total.Inf), "infinity", "infinities")))
	}
}

// untouched says which tensors stay because no family knows them.
func untouched(w io.Writer, list []arch.Strangers) {
	if len(list) == 0 {
		return
	}
	var names []string
	for i, s := range list {
		if i == 8 {
			names = append(names, plural(len(list)-i, "other", "others"))
			break
		}
		names = append(names, s.String())
	}
	remark(w, "untouched", "no part of the family, and left as they are: "+strings.Join(names, ", "))
}

func (a *inspectAdapter) print(w io.Writer) {
	if a == nil {
		return
	}
	text := fmt.Sprintf("%s, %s", a.File, plural(a.Tensors, "tensor", "tensors"))
	switch {
	case a.Problem != "":
		text += ", cannot follow passes that move weights, which are refused: " + a.Problem
	case a.Changes > 0:
		text += ", changes " + plural(a.Changes, "tensor", "tensors") + " of the model, and follows passes that move them"
	}
	remark(w, "adapter", text)
}

func (r *inspectJSON) table(each bool) *table {
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
		tab := newTable(append([]string{"tensor"}, values...)...)
		tab.whole = true
		for _, key := range order {
			tab.add(append([]string{key}, inspectValues(groups[key])...)...)
		}
		return tab
	}
	sort.Strings(order)
	tab := newTable(append([]string{"tensors", "n"}, values...)...)
	for _, key := range order {
		tab.add(append([]string{key, count(len(groups[key]))}, inspectValues(groups[key])...)...)
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
	return []string{dtype, count(weights), per("%.2f", rows, rowPairs), per("%.2f", mem, memPairs),
		per("%.2f", ones, elements), per("%.1f %%", 100*zeros, elements), per("%.3f", energy, layers)}
}
