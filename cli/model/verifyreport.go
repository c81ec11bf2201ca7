package model

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/card"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// verifyGroup is the tensors of one kind, or a single tensor.
type verifyGroup struct {
	name    string
	tensors int
	bits    [2]int // the fewest and the most changed bits
	classes map[verify.Class]bool
	snr     *float64 // lowest output SNR, dB
	near    *float64 // lowest SNR against the reference model, dB
	inputs  *float64 // lowest SNR on real inputs, dB
	moved   verify.Relation
}

// print prints the result, with a row for each kind of tensor or for each tensor.
func (r *verifyJSON) print(w io.Writer, each bool) {
	if len(r.Tensors) > 0 {
		r.table(each).Print(w)
		fmt.Fprintln(w)
	}
	if r.noisy() {
		text := "signal-to-noise ratio of a layer's output, for independent inputs of unit variance"
		if r.OnInputs == nil && r.tokens != "" {
			text += "; --tokens " + r.tokens + " adds the SNR on the model's inputs"
		}
		term.Remark(w, "SNR", text)
	}
	if r.zeroed() {
		term.Remark(w, "bits zeroed", "low mantissa bits that are zero in every value of OUT, but not in every value of MODEL")
	}
	if r.moved() {
		term.Remark(w, "moved", "order (permuted), ± (signs flipped), 2^k (scaled by powers of two)")
	}
	if r.OK {
		printQuantised(w, r.Quantised, copied)
		untouched(w, r.Untouched)
	}
	r.printReference(w)
	switch {
	case r.Loss != nil:
		r.Loss.print(w)
		r.printOnInputs(w)
		if r.Card != "" {
			term.Remark(w, "card", cardRemark(r.Card))
		}
	case r.lossBefore != nil:
		term.Remark(w, "loss", fmt.Sprintf("%.6f nats per token before; the output's loss was not computed", *r.lossBefore))
	case r.OK && r.tokens != "":
		term.Remark(w, "loss", "not measured: pass --tokens "+r.tokens+" to measure it")
	}
	if r.Energy != nil && r.Energy.Predicted != nil {
		printRatio(w, r.Energy.Predicted, r.workload, r.role, r.Energy.Kernels)
		printCoverage(w, r.Energy.Coverage)
		if r.Energy.RelativeTo != "" {
			term.Remark(w, "note", "the predicted energy is relative to "+r.Energy.RelativeTo)
		}
	}
	if r.taken != "" && r.Energy != nil {
		term.Remark(w, "note", "OUT's lowtoggle.json sets "+r.taken+"; flags given to verify take precedence")
	}
	if r.Energy != nil && r.Energy.Measured != nil {
		fmt.Fprintln(w)
		card.PrintModels(w, r.Energy.Measured, r.Energy.unsplit)
		if r.Energy.MeasuredTo != "" && r.Energy.Measured.Measured() {
			term.Remark(w, "note", "the measured energy is relative to "+r.Energy.MeasuredTo)
		}
		if r.Energy.MeasuredTo != "" {
			term.Remark(w, "note", fmt.Sprintf("the prediction compares OUT with the nearest codes; to measure this comparison: lowtoggle convert MODEL NEAREST --format %s --passes \"\", then "+
				"lowtoggle measure --w NEAREST: --against OUT:", r.Plan.Request.Format))
		}
	}
	if r.Energy != nil && r.Energy.Whole != nil {
		fmt.Fprintln(w)
		card.PrintWhole(w, r.Energy.Whole)
	}
	printNotDropIn(w, r.Plan)
	if warning := lowSNRFound(r.Report); warning != "" && r.OK {
		term.Remark(w, "warning", warning)
	}
	term.Remarks(w, "problem", r.problems())
	switch {
	case r.OK:
		fmt.Fprintln(w, "ok: every tensor agrees with the manifest")
	case r.Plan == nil:
		fmt.Fprintln(w, "NOT OK: the check was not possible, because OUT has no valid lowtoggle.json")
	case r.SourceChanged:
		fmt.Fprintln(w, "NOT OK: MODEL differs from the source that was converted, so OUT cannot be checked")
	default:
		fmt.Fprintln(w, "NOT OK: the output is not a correct conversion of this source; do not use it")
	}
}

// problems lists the model's problems, then the tensors' problems. Each problem of tensors is listed once.
func (r *verifyJSON) problems() []string {
	var ofTensors term.ByKind
	kinds := map[string]string{}
	for _, t := range r.Tensors {
		if t.Problem != "" {
			ofTensors.Add(t.Problem, t.Name)
			kinds[t.Name] = groupName(t, false)
		}
	}
	return append(slices.Clone(r.Problems), ofTensors.Lines(func(tensor string) string { return kinds[tensor] })...)
}

// hint prints what to do about an output that is not correct.
func (r *verifyJSON) hint(c *cli.Context, src *weights.Model, args []string, familyGiven bool) {
	if r.OK || r.Plan == nil {
		return
	}
	layout, _ := arch.Resolve(src, nil)
	switch {
	case r.SourceChanged:
		term.Remark(c.App.Writer, "hint", "OUT's weights have the SHA-256 digests that OUT/lowtoggle.json records: restore MODEL, or give the source that was converted, and verify again")
	case r.Plan.Model.Family != "" && layout == nil && !familyGiven:
		term.Remark(c.App.Writer, "hint", fmt.Sprintf("the conversion was planned for the unknown family %s: name the family's file with --arch", r.Plan.Model.Family))
	case r.Plan.CheckModel(src) == nil:
		term.Remark(c.App.Writer, "hint", fmt.Sprintf("%s:\n%s%s", remake, term.CommandIndent, remakeCommand(c.String("arch"), r.Plan, args[0], args[1])))
	}
}

func (r *verifyJSON) table(each bool) *term.Table {
	lowest, near := "lowest\nSNR", slices.ContainsFunc(r.Tensors, func(t verify.Tensor) bool { return t.ReferenceSNR != nil })
	if r.Plan != nil && r.Plan.Request.Reference != "" {
		lowest = "SNR to\nsource"
	}
	head := []string{"tensors", "n", "class", lowest, "bits\nzeroed"}
	if each {
		head = []string{"tensor", "class", strings.TrimPrefix(lowest, "lowest\n"), "bits\nzeroed"}
	}
	if near {
		head = slices.Insert(head, len(head)-1, "SNR to\nreference")
	}
	if r.OnInputs != nil {
		head = slices.Insert(head, len(head)-1, "SNR on\ninputs")
	}
	moved := r.moved()
	if moved {
		head = append(head, "moved\nrows", "moved\ncolumns")
	}
	tab := term.NewTable(head...)
	tab.Whole = each
	for _, g := range r.groups(each) {
		bits := "–"
		switch fewest, most := g.bits[0], g.bits[1]; {
		case fewest < most:
			bits = fmt.Sprintf("%d–%d", fewest, most)
		case most > 0:
			bits = fmt.Sprint(most)
		}
		row := []string{g.name}
		if !each {
			row = append(row, term.Count(g.tensors))
		}
		row = append(row, classes(g.classes), term.Decibels(g.snr))
		if near {
			row = append(row, term.Decibels(g.near))
		}
		if r.OnInputs != nil {
			row = append(row, term.Decibels(g.inputs))
		}
		row = append(row, bits)
		if m := g.moved; moved {
			row = append(row, moves(m.RowsMoved, m.RowsFlipped, m.RowsScaled), moves(m.ColsMoved, m.ColsFlipped, m.ColsScaled))
		}
		tab.Add(row...)
	}
	return tab
}

func (r *verifyJSON) groups(each bool) []*verifyGroup {
	var list []*verifyGroup
	groups := map[string]*verifyGroup{}
	for _, t := range r.Tensors {
		name := groupName(t, each)
		g := groups[name]
		if g == nil {
			g = &verifyGroup{name: name, classes: map[verify.Class]bool{}, bits: [2]int{t.BitsZeroed, t.BitsZeroed}}
			groups[name] = g
			list = append(list, g)
		}
		g.add(t)
		g.inputs = lower(g.inputs, r.OnInputs.of(t.Name))
	}
	if !each {
		sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	}
	return list
}

// groupName returns the name of the row for a tensor.
func groupName(t verify.Tensor, each bool) string {
	switch {
	case each:
		return t.Name
	case t.Part != "":
		return string(t.Part) + " (quantised)"
	case t.Kind != "":
		return t.Kind
	}
	return (*arch.Layout)(nil).Kind(t.Name)
}

func (g *verifyGroup) add(t verify.Tensor) {
	g.tensors++
	g.classes[t.Class] = true
	g.bits = [2]int{min(g.bits[0], t.BitsZeroed), max(g.bits[1], t.BitsZeroed)}
	g.snr, g.near = lower(g.snr, t.SNR), lower(g.near, t.ReferenceSNR)
	if m := t.Relation; m != nil {
		g.moved.RowsMoved += m.RowsMoved
		g.moved.ColsMoved += m.ColsMoved
		g.moved.RowsFlipped += m.RowsFlipped
		g.moved.ColsFlipped += m.ColsFlipped
		g.moved.RowsScaled += m.RowsScaled
		g.moved.ColsScaled += m.ColsScaled
	}
}

// noisy reports whether the table holds an SNR for inputs of unit variance.
func (r *verifyJSON) noisy() bool {
	return slices.ContainsFunc(r.Tensors, func(t verify.Tensor) bool { return t.SNR != nil || t.ReferenceSNR != nil })
}

// zeroed reports whether a tensor lost low mantissa bits.
func (r *verifyJSON) zeroed() bool {
	return slices.ContainsFunc(r.Tensors, func(t verify.Tensor) bool { return t.BitsZeroed > 0 })
}

func (r *verifyJSON) moved() bool {
	for _, t := range r.Tensors {
		if t.Relation != nil {
			return true
		}
	}
	return false
}

func classes(have map[verify.Class]bool) string {
	var parts []string
	for _, c := range []verify.Class{verify.Identical, verify.Exact, verify.Compensated, verify.Rescaled, verify.Lossy, verify.Untouched} {
		if have[c] {
			parts = append(parts, string(c))
		}
	}
	return strings.Join(parts, ", ")
}

// moves describes how an axis was changed.
func moves(order, signs, exponents int) string {
	var parts []string
	for _, m := range []struct {
		n    int
		word string
	}{{order, "order"}, {signs, "±"}, {exponents, "2^k"}} {
		if m.n > 0 {
			parts = append(parts, m.word)
		}
	}
	return strings.Join(parts, " ")
}
