package card

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// measureReport prints what was measured on one card.
type measureReport struct {
	*measure.Result
	title string
	card  string // name among several cards; empty if there is one card
}

func (r measureReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\n", cardLabel(r.GPU, r.Card.ID()), printable.Quote(r.title))
	if len(r.AtDuty) > 0 {
		fmt.Fprintln(w, dutyTitle(r.Pacing))
	}
	r.printTable(w)
	for _, other := range r.AtDuty {
		fmt.Fprintf(w, "\n%s\n", dutyTitle(other.Pacing))
		measureReport{Result: other, card: r.card}.printTable(w)
	}
}

// printTable prints a row for every load, and remarks.
func (r measureReport) printTable(w io.Writer) {
	heads := []string{"weights", "energy", "95 %", "time", "energy\nper pass", "power", "clock", ""}
	loads := append([]power.Comparison{{Summary: r.Baseline}, r.Null}, r.Variants...)
	paced := r.Baseline.EffectiveClock != nil
	if paced {
		heads = slices.Insert(heads, 7, "effective\nclock")
	}
	tab := term.NewTable(heads...)
	for _, v := range loads {
		cells := comparisonCells(v)
		if paced {
			cells = slices.Insert(cells, 7, megahertz(v.EffectiveClock))
		}
		tab.Add(cells...)
	}
	tab.Print(w)
	fmt.Fprintln(w)
	dutyRemark(w, r.Result)
	r.remarks(w)
}

// remarks prints the precision of the table, notes and warnings.
func (r measureReport) remarks(w io.Writer) {
	text := fmt.Sprintf("%s in %.0f s", term.Plural(r.Null.Blocks, "block", "blocks"), r.Seconds)
	if r.Resolvable > 0 {
		text += fmt.Sprintf("; effects below %.2f %% are not resolved", 100*r.Resolvable)
	}
	if r.Teraflops > 0 {
		unit := "TFLOP/s"
		if r.Products[0].Problem.Type == arith.INT8 {
			unit = "TOP/s"
		}
		text += fmt.Sprintf("; %.0f %s", r.Teraflops, unit)
	}
	if d := r.Deviation; d != nil {
		text += fmt.Sprintf("; results agree with the CPU (relative error %.1e)", d.Relative)
	}
	term.Remark(w, how(r.Simulated), text)
	term.Remark(w, "energy, time", "change relative to "+r.Baseline.Name+"; the 95 % interval is of the energy")
	if len(r.Products) == 1 && r.Products[0].Kernel != nil {
		term.Remark(w, "kernel", r.Products[0].Kernel.String())
	}
	if r.Stack > 1 {
		term.Remark(w, "note", stackedNote(r.Stack))
	}
	if r.Dropped > 0 {
		term.Remark(w, "note", term.Plural(r.Dropped, "reading was", "readings were")+" dropped because the execution time was unusual")
	}
	switch r.Stopped {
	case power.StoppedTime:
		term.Remark(w, "note", fmt.Sprintf("the time was spent before every 95 %% interval was within ±%.2g %%: give a longer --time", 100*r.Precision))
	case power.StoppedCancelled:
		term.Remark(w, "note", "the measurement was interrupted; the report has the figures until then")
	case power.StoppedFailed:
		term.Remark(w, "note", "the measurement failed; the report has the figures until then")
	}
	if r.Simulated && r.card == "" {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "warning", r.Warnings)
	switch {
	case r.card == "":
		term.Remarks(w, "INVALID", r.Invalid)
	case r.OnlyNull(): // some of several cards may deviate by chance
		term.Remark(w, "warning", "the copy's energy differs from the original's; by chance this happens on one card in twenty")
	}
}

// comparisonCells is a row of the table.
func comparisonCells(c power.Comparison) []string {
	if c.Blocks == 0 {
		return summaryCells(c.Summary, "–", "–", "–")
	}
	return summaryCells(c.Summary, term.MeasuredChange(c.RelativeEnergy, c.Interval), term.Interval(c.Interval), term.MeasuredChange(c.RelativeTime, c.TimeInterval))
}

func summaryCells(s power.Summary, energy, interval, time string) []string {
	joules, watts, capped := "–", "–", ""
	if s.Windows > 0 {
		joules, watts = siJoules(s.Joules), fmt.Sprintf("%.0f W", s.Watts)
	}
	if s.Capped != nil && *s.Capped {
		capped = "capped"
	}
	return []string{s.Name, energy, interval, time, joules, watts, megahertz(s.SMClock), capped}
}

func megahertz(clock *float64) string {
	if clock == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f MHz", *clock)
}

// siJoules formats an energy in joules with an SI prefix.
func siJoules(v float64) string { return joulesBeside(v, v) }

// joulesBeside formats an energy v with the SI prefix of another energy, for numbers that stand side by side.
func joulesBeside(v, other float64) string {
	switch {
	case other >= 1:
		return fmt.Sprintf("%.3f J", v)
	case other >= 1e-3:
		return fmt.Sprintf("%.3f mJ", 1e3*v)
	}
	return fmt.Sprintf("%.3f µJ", 1e6*v)
}

// bench prints the readings as lines of Go benchmarks.
func (r measureReport) bench(w io.Writer) {
	fmt.Fprintf(w, "gpu: %s\nproduct: %s\n", cardLabel(r.GPU, r.Card.ID()), printable.Quote(r.title))
	name := "BenchmarkGEMM"
	if r.card != "" {
		name += benchCard(r.card)
	}
	benchLines(w, name, r.Result)
}

// benchCard returns the part of a benchmark's name that names the card.
func benchCard(card string) string { return "/card=" + benchName(strings.TrimPrefix(card, "card ")) }

// benchLines prints a line for each reading of a complete block. The baseline comes first, because benchstat compares
// with the first.
func benchLines(w io.Writer, name string, r *measure.Result) {
	order := []string{r.Baseline.Name, r.Null.Name}
	for _, v := range r.Variants {
		order = append(order, v.Name)
	}
	var windows []power.Window
	for _, b := range r.Blocks {
		if b.Complete {
			windows = append(windows, b.Windows...)
		}
	}
	for _, load := range order {
		for _, win := range windows {
			if win.Load != load {
				continue
			}
			fmt.Fprintf(w, "%s/w=%s %d %.6g ns/op %.6g J/op %.2f W\n",
				name, benchName(win.Load), win.Executions, 1e9*win.Seconds, win.PerExecution, win.Watts)
		}
	}
	for _, reason := range r.Invalid {
		fmt.Fprintf(w, "invalid: %s\n", printable.Quote(reason))
	}
	for _, other := range r.AtDuty {
		if p := other.Pacing; p != nil {
			benchLines(w, fmt.Sprintf("%s/duty=%.3g", name, p.Duty), other)
		}
	}
}

// benchName makes a name valid in a benchmark's name: without spaces, slashes and dashes. benchstat would read a
// number after the last dash as the number of processors.
func benchName(name string) string {
	name = strings.ReplaceAll(strings.Join(strings.Fields(name), ""), "/", "_")
	if i := strings.LastIndex(name, "-"); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i] + "_" + name[i+1:]
	}
	return name
}

// stackedNote explains why small weights are stacked.
func stackedNote(high int) string {
	return fmt.Sprintf("every layer's weights are stacked %d times, because kernel launches would dominate the energy of small layers", high)
}

// simulatedNote ends every report of a simulated card.
const simulatedNote = "the card is simulated: the figures are an example of a report, not measurements"
