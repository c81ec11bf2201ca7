package card

import (
	"fmt"
	"io"
	"slices"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// serveReport prints a comparison of servers.
type serveReport struct{ *serve.Result }

func (r serveReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\n", cardLabel(r.GPU, cardIDs(r.Cards)), printable.Quote(r.title()))
	list := comparisonsOf(r.Result)
	energy := term.NewTable("server", "energy change\nper token", "95 %", "energy per\noutput token", "energy per\ntotal token", "power", "clock", "")
	speed := term.NewTable("server", "change in\ntime per token", "95 %", "tokens\nper second", "TTFT\np50, ms", "TTFT\np99, ms", "ITL\np50, ms", "ITL\np99, ms")
	for _, c := range list {
		change, time := "–", "–"
		if c.Passes > 0 {
			change, time = term.MeasuredChange(c.RelativeEnergy, c.Interval), term.MeasuredChange(c.RelativeTime, c.TimeInterval)
		}
		energy.Add(append([]string{c.Name, change, term.Interval(c.Interval)}, energyCells(c.Summary)...)...)
		speed.Add(append([]string{c.Name, time, term.Interval(c.TimeInterval)}, speedCells(c.Summary)...)...)
	}
	energy.Print(w)
	fmt.Fprintln(w)
	speed.Print(w)
	fmt.Fprintln(w)
	r.remarks(w)
}

// comparisonsOf lists the baseline, its copy if there is one, and the variants.
func comparisonsOf(r *serve.Result) []serve.Comparison {
	list := []serve.Comparison{{Summary: r.Baseline}}
	if r.Null != nil {
		null := *r.Null
		null.Name += " (null)"
		list = append(list, null)
	}
	return append(list, r.Variants...)
}

// title describes the load.
func (r serveReport) title() string {
	l := r.Workload
	what := fmt.Sprintf("%s at a time, ", term.Plural(l.Concurrency, "request", "requests"))
	if l.Source != "" {
		what += "prompts of " + l.Source
	} else {
		what += fmt.Sprintf("prompts of %s", term.Plural(l.PromptTokens, "random token", "random tokens"))
	}
	what += fmt.Sprintf(", answers of %s", term.Plural(l.OutputTokens, "token", "tokens"))
	if n := len(r.Cards); n > 1 {
		what += fmt.Sprintf(", on %d cards", n)
	}
	return what
}

func energyCells(s serve.Summary) []string {
	if s.Windows == 0 {
		return []string{"–", "–", "–", "–", ""}
	}
	total, clock, capped := "–", "–", ""
	if s.JoulesPerTotal > 0 {
		total = siJoules(s.JoulesPerTotal)
	}
	if s.SMClock != nil {
		clock = fmt.Sprintf("%.0f MHz", *s.SMClock)
	}
	if s.Capped != nil && *s.Capped {
		capped = "capped"
	}
	return []string{siJoules(s.Joules), total, fmt.Sprintf("%.0f W", s.Watts), clock, capped}
}

func speedCells(s serve.Summary) []string {
	cells := []string{"–", "–", "–", "–", "–"}
	if s.Windows > 0 {
		cells[0] = fmt.Sprintf("%.1f", s.Speed)
	}
	for i, l := range []*serve.Latency{s.FirstToken, s.InterToken} {
		if l != nil {
			cells[1+2*i], cells[2+2*i] = milliseconds(l.P50), milliseconds(l.P99)
		}
	}
	return cells
}

// milliseconds formats a latency, given in seconds, as milliseconds without the unit.
func milliseconds(seconds float64) string { return fmt.Sprintf("%.1f", 1e3*seconds) }

// remarks prints the run's precision, notes and warnings.
func (r serveReport) remarks(w io.Writer) {
	simulated := slices.ContainsFunc(r.Cards, func(i power.Info) bool { return i.Driver == "none" })
	text := fmt.Sprintf("%s in %.0f s", term.Plural(r.blocks(), "block", "blocks"), r.Seconds)
	if r.Resolvable > 0 {
		text += fmt.Sprintf("; effects below %.2f %% are not resolved", 100*r.Resolvable)
	}
	if r.IdleWatts > 0 {
		text += fmt.Sprintf("; %.0f W with all servers idle", r.IdleWatts)
	}
	term.Remark(w, how(simulated), text)
	if len(r.Servers) > 1 {
		term.Remark(w, "energy, time", "change per output token, relative to "+r.Baseline.Name+", with its 95 % interval")
	}
	term.Remark(w, "total token", "a token of a prompt or of an answer")
	term.Remark(w, "TTFT, ITL", "time to first token and inter-token latency; p50 and p99 are percentiles")
	if len(r.Servers) > 1 && r.Null == nil {
		term.Remark(w, "note", "the measurement error of this run is not known; add --null NAME=URL, a server with a copy of the baseline's weights")
	}
	switch r.Stopped {
	case power.StoppedTime:
		if len(r.Servers) > 1 {
			term.Remark(w, "note", fmt.Sprintf("the time ended before every 95 %% interval was within ±%.2g %%: give a longer --time", 100*r.Precision))
		}
	case power.StoppedCancelled:
		term.Remark(w, "note", "the measurement was interrupted; the report has the figures so far")
	case power.StoppedFailed:
		term.Remark(w, "note", "the measurement failed; the report has the figures so far")
	}
	if simulated {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "warning", r.Warnings)
	term.Remarks(w, "INVALID", r.Invalid)
}

// blocks returns the number of complete blocks.
func (r serveReport) blocks() (n int) {
	for _, b := range r.Blocks {
		if b.Complete {
			n++
		}
	}
	return n
}
