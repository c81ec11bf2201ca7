package card

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// PrintModels prints the energy of two models. unsplit explains why power is not split by component, and is printed
// only if something was measured.
func PrintModels(w io.Writer, r *measure.ModelReport, unsplit string) {
	simulated := slices.ContainsFunc(r.Cards, func(c measure.CardEnergy) bool { return c.Simulated && len(c.Phases) > 0 && !c.Unchanged() })
	if simulated {
		term.Remark(w, "note", simulatedNote)
		fmt.Fprintln(w)
	}
	if !r.Several() {
		printModelEnergy(w, r.Cards[0], unsplit)
		return
	}
	for i, c := range r.Cards {
		fmt.Fprintf(w, "%s:\n", printable.Quote(c.Name))
		if i > 0 { // the first card's remark applies to all cards
			unsplit = ""
		}
		printModelEnergy(w, c, unsplit)
		fmt.Fprintln(w)
	}
	if r.Total != nil {
		for i, p := range r.Total.Phases {
			fmt.Fprintf(w, "%s, ", p.Phase)
			printTotals(w, len(r.Cards), "layers", p.Loads)
			printSpreads(w, "layers", r.Spread.Phases[i].Loads)
			fmt.Fprintln(w)
		}
		if len(r.Total.Phases) > 1 && r.Total.Relative > 0 {
			fmt.Fprintf(w, "energy of the workload on all cards: %s %s, 95 %%: %s\n", term.MeasuredChange(r.Total.Relative, r.Total.Interval), how(simulated), term.Interval(r.Total.Interval))
		}
	}
	term.Remarks(w, "INVALID", r.Invalid)
}

// printModelEnergy writes a table for each phase.
func printModelEnergy(w io.Writer, e measure.CardEnergy, unsplit string) {
	if len(e.Phases) == 0 && e.X == "" { // no layer was measured, so there are no activations
		fmt.Fprintln(w, "energy: not measured, because no linear layer of the model is stored in a format that can be measured")
	}
	if len(e.Phases) > 0 && e.Unchanged() {
		fmt.Fprintln(w, "energy: not measured, because no linear layer was changed")
		return
	}
	for i, p := range e.Phases {
		if i > 0 {
			fmt.Fprintln(w)
		}
		memory := ""
		if p.Phase == "decode" {
			memory = " from memory"
		}
		fmt.Fprintf(w, "%s, %s: %d tokens, weights %s%s, x %s\n\n", measuredOn(e.Simulated, e.GPU, e.CardID), p.Phase, p.Tokens, e.Role, memory, e.X)
		if p.AtDuty(0) != nil {
			fmt.Fprintln(w, dutyTitle(pacingOf(p)))
		}
		printPhase(w, p)
		for k := 0; p.AtDuty(k) != nil; k++ {
			fmt.Fprintf(w, "\n%s\n", dutyTitle(pacingOf(*p.AtDuty(k))))
			printPhase(w, *p.AtDuty(k))
		}
	}
	if len(e.Phases) > 1 && e.Relative > 0 {
		fmt.Fprintf(w, "energy of the workload: %s %s, 95 %%: %s\n", term.MeasuredChange(e.Relative, e.Interval), how(e.Simulated), term.Interval(e.Interval))
	}
	printSignatures(w, e.Signatures())
	if unsplit != "" && slices.ContainsFunc(e.Phases, func(p measure.Phase) bool { return p.Total != nil && p.Total.Run != nil }) {
		term.Remark(w, "note", unsplit)
	}
	before := ""
	if len(e.KernelsAfter) > 0 {
		before = "before: "
	}
	for _, k := range e.Kernels {
		term.Remark(w, "kernel", before+k)
	}
	for _, k := range e.KernelsAfter {
		term.Remark(w, "kernel", "after: "+k)
	}
	if len(e.Skipped) > 0 {
		term.Remark(w, "note", "layers not measured, because lowtoggle has no GEMM for their stored type: "+strings.Join(e.Skipped, ", "))
	}
	if e.Name != "" {
		return // notes about all cards follow the last card
	}
	term.Remarks(w, "INVALID", e.Invalid)
}

// measuredOn begins a table's title.
func measuredOn(simulated bool, gpu, id string) string {
	if simulated {
		return cardLabel(gpu, id)
	}
	return "measured on " + cardLabel(gpu, id)
}

// pacingOf returns how a phase's loads were paced; nil without gaps.
func pacingOf(p measure.Phase) *power.Pacing {
	for _, row := range append(p.Layers[:len(p.Layers):len(p.Layers)], *cmp.Or(p.Total, &measure.Row{})) {
		if row.Run != nil {
			return row.Run.Pacing
		}
	}
	return nil
}

// printPhase prints a table of a phase at one duty, and remarks.
func printPhase(w io.Writer, p measure.Phase) {
	heads := []string{"layers", "n", "energy", "95 %", "time", "power\nbefore, after", "clock, MHz\nbefore,\nafter", "note"}
	cells := rowCells
	if t := p.Total; t != nil && t.Run != nil && t.Run.Pacing != nil {
		heads = slices.Insert(heads, 7, "effective\nclock, MHz\nbefore, after")
		cells = func(row measure.Row, name string) []string {
			return slices.Insert(rowCells(row, name), 7, effectiveClocks(row))
		}
	}
	tab := term.NewTable(heads...)
	for _, row := range p.Layers {
		tab.Add(cells(row, row.Kind)...)
	}
	if p.Total != nil {
		tab.Add(cells(*p.Total, "total")...)
	}
	tab.Print(w)
	fmt.Fprintln(w)
	if t := p.Total; t != nil && t.Run != nil {
		dutyRemark(w, t.Run)
	}
	phaseRemarks(w, p)
}

// phaseRemarks prints the precision of a phase's table, notes and warnings.
func phaseRemarks(w io.Writer, p measure.Phase) {
	rows := p.Layers
	if p.Total != nil {
		rows = append(rows[:len(rows):len(rows)], *p.Total)
	}
	if slices.ContainsFunc(rows, func(r measure.Row) bool { return r.Relative > 0 && !r.Identical }) {
		term.Remark(w, "energy, time", relativeNote)
	}
	missed, widest := 0, 0.0
	var warnings []string
	for i, row := range rows {
		if row.Run == nil {
			continue
		}
		for _, text := range row.Run.Invalid {
			switch {
			case strings.HasPrefix(text, "the null"):
				missed++
			case i < len(p.Layers) && !slices.Contains(warnings, text): // the warnings of a total are printed as INVALID
				warnings = append(warnings, text)
			}
		}
		widest = max(widest, row.Run.Resolvable)
		for _, text := range row.Run.Warnings {
			if !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
	}
	if widest > 0 {
		term.Remark(w, "null", fmt.Sprintf("a copy of the source was measured too; effects below %.2f %% are not resolved", 100*widest))
	}
	if p.TooLarge {
		text := "both models together do not fit on the card"
		if p.Total != nil {
			text += ": the total is the mean of the rows, weighted by energy"
		} else {
			text += ", but there is no total, because some rows were not measured"
		}
		term.Remark(w, "note", text)
	}
	if t := p.Total; t != nil && t.Run != nil && t.Run.Stack > 1 {
		term.Remark(w, "note", stackedNote(t.Run.Stack))
	}
	if t := p.Total; t != nil && t.Run != nil && t.Run.Stopped == power.StoppedTime {
		term.Remark(w, "note", outOfTime(t.Run))
	}
	if missed > 0 {
		term.Remark(w, "warning", fmt.Sprintf("in %s of %d, with the note \"copy differs\" or \"invalid\", the copy's energy differs from the original's; by chance this happens in one row of twenty", term.Plural(missed, "row", "rows"), len(rows)))
	}
	term.Remarks(w, "warning", warnings)
}

// relativeNote explains the columns of energy and time of two models.
const relativeNote = "change relative to MODEL; the 95 % interval is of the energy"

// outOfTime says which intervals of the total were wider than the precision when the time was spent.
func outOfTime(r *measure.Result) string {
	wide := func(name string, interval []float64) string {
		if interval == nil {
			return fmt.Sprintf("%s (unknown)", name)
		}
		return fmt.Sprintf("%s (±%.2f %%)", name, 50*(interval[1]-interval[0]))
	}
	return fmt.Sprintf("the time was spent before the intervals of %s and of %s were both within ±%.2g %%: give a longer --time",
		wide("the total", r.Variants[0].Interval), wide("the copy", r.Null.Interval), 100*r.Precision)
}

func rowCells(r measure.Row, name string) []string {
	cells := []string{name, term.Count(r.Layers)}
	switch {
	case r.Identical:
		return append(cells, "identical", "–", "–", "–", "–", "")
	case r.Run == nil && r.Interval != nil:
		return append(cells, term.MeasuredChange(r.Relative, r.Interval), term.Interval(r.Interval), "–", "–", "–", "")
	case r.Run == nil || r.Run.Variants[0].Blocks == 0:
		return append(cells, "–", "–", "–", "–", "–", "")
	}
	before, v := r.Run.Baseline, r.Run.Variants[0]
	note := noteOf(r.Run.Valid, r.Run.OnlyNull(), before.Capped, v.Capped)
	return append(cells, term.MeasuredChange(v.RelativeEnergy, v.Interval), term.Interval(v.Interval), term.MeasuredChange(v.RelativeTime, v.TimeInterval),
		fmt.Sprintf("%.0f, %.0f W", before.Watts, v.Watts), twoClocks(before.SMClock, v.SMClock), note)
}

// noteOf returns the note on a row: whether a load ran at the power limit, and whether the run is invalid. copyDiffers
// is true if the only reason is the copy's energy, which differs by chance in one row of twenty. A remark below the
// table has the reason.
func noteOf(valid, copyDiffers bool, capped ...*bool) string {
	var notes []string
	if slices.ContainsFunc(capped, func(c *bool) bool { return c != nil && *c }) {
		notes = append(notes, "capped")
	}
	switch {
	case copyDiffers:
		notes = append(notes, "copy differs")
	case !valid:
		notes = append(notes, "invalid")
	}
	return strings.Join(notes, ", ")
}

func twoClocks(before, after *float64) string {
	if before == nil || after == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f, %.0f", *before, *after)
}

// effectiveClocks formats the clocks during the products, before and after.
func effectiveClocks(r measure.Row) string {
	if r.Run == nil {
		return "–"
	}
	return twoClocks(r.Run.Baseline.EffectiveClock, r.Run.Variants[0].EffectiveClock)
}

// BenchModels prints the readings as lines of Go benchmarks.
func BenchModels(w io.Writer, r *measure.ModelReport) {
	for _, c := range r.Cards {
		benchModelEnergy(w, c)
	}
}

func benchModelEnergy(w io.Writer, e measure.CardEnergy) {
	fmt.Fprintf(w, "gpu: %s\nrole: %s\nx: %s\n", cardLabel(e.GPU, e.CardID), e.Role, e.X)
	name := "BenchmarkLayers"
	if e.Name != "" {
		name += benchCard(e.Name)
	}
	line := func(p measure.Phase, kind string, r *measure.Result) {
		if r != nil {
			benchLines(w, name+"/phase="+p.Phase+"/layers="+kind, r)
		}
	}
	for _, p := range e.Phases {
		if p.Total != nil {
			line(p, "total", p.Total.Run)
		}
		for _, row := range p.Layers {
			line(p, row.Kind, row.Run)
		}
	}
}
