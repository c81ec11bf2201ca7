package model

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// printPlan prints what a plan does, with a row for each kind of layer.
func printPlan(w io.Writer, m *weights.Model, p *plan.Plan, layout *arch.Layout) {
	kinds := transform.Passes.Summary(m, p, layout)
	tab := term.NewTable("layers", "n", "weights", "change of values", lowestHead(p), "energy, predicted")
	shortened := false
	for _, k := range kinds {
		changes, whole := changesOf(k.Treatments)
		shortened = shortened || !whole
		tab.Add(k.Kind, term.Count(k.Layers), term.Count(k.Weights), changes, term.Decibels(k.LowestSNR), ratioChange(k.Energy))
	}
	total := transform.Predicted(m, p)
	if total != nil {
		tab.Add("total", "", "", "", "", ratioChange(total))
	}
	if len(kinds) > 0 || len(p.Quantised) == 0 {
		tab.Print(w)
		fmt.Fprintln(w)
	}
	if shortened {
		term.Remark(w, "change of values", "(3 of 6) means that 3 of the kind's 6 layers have this change, and the others have another change or none. README.md of the converted model lists all changes")
	}
	if total != nil {
		printRatio(w, total, p.Request.Workload, p.Request.Role, p.Kernels)
	}
	printCoverage(w, predict.CoverageOf(m, layout))
	if note := noSaving(p, total); note != "" {
		term.Remark(w, "note", note)
	}
	if warning := lowSNR(p); warning != "" {
		term.Remark(w, "warning", warning)
	}
	printSearch(w, p)
	printExact(w, p)
	printReference(w, p)
	if leavesAdapters(m, p) {
		term.Remark(w, "adapters", othersDoNotFit)
	}
	if transform.ScalesLayers(p) {
		term.Remark(w, "warning", transform.ServeScaled)
	}
	printNotDropIn(w, p)
	printQuantised(w, p.Quantised, copied)
	term.Remarks(w, "note", p.Notes)
	term.Remarks(w, "not done", missedKinds(p, layout))
}

// lowestHead returns the head of the column of lowest output SNRs. The head names the inputs of the SNRs, unless
// layers differ in them.
func lowestHead(p *plan.Plan) string {
	heads := map[string]bool{}
	for _, o := range p.Predictions {
		if o.SNR != nil {
			heads["lowest SNR"] = true
		}
		if o.SampleSNR != nil {
			heads["lowest SNR\n(sampled)"] = true
		}
		if o.InputSNR != nil {
			heads["lowest SNR\non inputs"] = true
		}
	}
	if len(heads) == 1 {
		for head := range heads {
			return head
		}
	}
	return "lowest SNR"
}

// printSearch prints the trials and the result of the search within a budget of loss.
func printSearch(w io.Writer, p *plan.Plan) {
	f := p.Search
	if f == nil {
		return
	}
	tab := term.NewTable("perplexity may rise by", "energy, predicted")
	for _, b := range f.Frontier {
		tab.Add(fmt.Sprintf("%g %%", 100*b.MaxLoss), term.Signed(100*(b.Energy-1), 1)+" %")
	}
	fmt.Fprintln(w)
	if len(f.Frontier) > 0 {
		tab.Print(w)
		term.Remark(w, "other budgets", "this table is estimated from single layers and from the search's trials; --max-loss sets another budget")
		fmt.Fprintln(w)
	}
	t := f.Best()
	if t == nil {
		reason, advice := "every lossy change exceeds the budget", "give a larger --max-loss"
		if slices.ContainsFunc(f.Trials, func(t plan.Trial) bool { return t.Divergence <= f.Budget }) {
			reason = "no lossy change was shown to keep the budget"
			advice = "the held-out tokens are too few to measure a loss as small as the budget: give more calibration tokens, or " + advice
		}
		term.Remark(w, "search", reason+", so the plan has no lossy change; "+advice)
		return
	}
	interval := ""
	if t.Interval != nil {
		interval = fmt.Sprintf(" (95 %%: %s … %s)", term.Signed(t.Interval[0], 6), term.Signed(t.Interval[1], 6))
	}
	if b := p.Request.MaxLoss; b != nil {
		term.Remark(w, "budget", fmt.Sprintf("perplexity may rise by %.3g %%", 100*math.Expm1(*b)))
	}
	term.Remark(w, "search", fmt.Sprintf("%s of whole models. On held-out calibration tokens, the outputs of the chosen model diverge by %.6f nats per token "+
		"(limit: %.6f, %g %% of the budget). Its loss rises by %s nats per token%s", term.Plural(len(f.Trials), "trial", "trials"), t.Divergence, f.Budget, 100*search.Margin, term.Signed(t.Loss, 6), interval))
	if unused := unusedPasses(p); len(unused) > 0 {
		term.Remark(w, "note", "the search chose "+strings.Join(unused, " and ")+" in no layer")
	}
	most := p.Request.MaxLoss
	switch {
	case most == nil || t.Divergence > 0.8*f.Budget:
	case t.Interval != nil && t.Interval[1] > 0.5**most:
		term.Remark(w, "note", fmt.Sprintf("part of the budget is not spent: the 95 %% interval of the rise of the loss must end below %.6f nats per token; "+
			"more calibration tokens make the interval narrower", *most))
	default:
		term.Remark(w, "note", "part of the budget is not spent: these passes offer no coarser values, or the next coarser model exceeds the budget")
	}
}

// unusedPasses returns the requested lossy passes that no step has.
func unusedPasses(p *plan.Plan) (unused []string) {
	for _, r := range transform.Passes {
		name := r.Pass.Name
		requested := slices.ContainsFunc(p.Request.Passes, func(text string) bool { text, _, _ = strings.Cut(text, "="); return text == name })
		if requested && r.Pass.Class == pass.Lossy && !slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Pass == name }) {
			unused = append(unused, name)
		}
	}
	return unused
}

// printExact prints the changes of the passes that keep all values.
func printExact(w io.Writer, p *plan.Plan) {
	indices := map[string]int{}
	for _, s := range p.Steps {
		if s.Index != "" {
			indices[s.Pass]++
		}
	}
	var parts []string
	for _, r := range transform.Passes {
		if n := indices[r.Pass.Name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s on %s", r.Pass.Name, term.Plural(n, "index", "indices")))
		}
	}
	if len(parts) > 0 {
		term.Remark(w, "exact", strings.Join(parts, ", "))
	}
}

// othersDoNotFit is the note on a result with permuted, negated or scaled weights.
const othersDoNotFit = "LoRA adapters of the source do not fit the result. To convert an adapter with the model, put the adapter into the source's folder, " +
	"and convert into a new folder. To repeat the plan of an earlier conversion, give --plan with the earlier conversion's lowtoggle.json"

// leavesAdapters reports whether LoRA adapters for the source do not fit the result. An adapter in the model's folder
// is converted with the model.
func leavesAdapters(m *weights.Model, p *plan.Plan) bool {
	return transform.Passes.Moves(p) && m.Adapter == nil
}

// noSaving returns a note if the plan is not predicted to save energy; otherwise an empty string. total is the plan's
// prediction, or nil.
func noSaving(p *plan.Plan, total *predict.Ratio) string {
	nothing, more := transform.SavesNothing(total)
	if !nothing {
		return ""
	}
	what := "save no energy"
	if more {
		what = "cost energy"
	}
	if p.Request.Format != "" {
		return fmt.Sprintf("this conversion is predicted to %s, relative to %s%s", what, transform.FormatBaseline, otherPasses(p))
	}
	usual := ""
	if load := p.Request.Workload; load.Decode == 0 && len(p.Steps) > 0 && !slices.ContainsFunc(p.Steps, lossy) {
		usual = fmt.Sprintf(", as is usual for exact passes in %s", load)
	}
	return fmt.Sprintf("this conversion is predicted to %s%s: keep the source, or try another recipe or other passes", what, usual)
}

// otherPasses returns advice on passes that save energy in a new format; empty if there are none, or if the plan has them.
func otherPasses(p *plan.Plan) string {
	f, err := quantise.ParseTarget(p.Request.Format)
	switch {
	case err != nil:
		return ""
	case transform.FormatPasses(f, false) != "" && !slices.ContainsFunc(p.Request.Passes, func(s string) bool { return strings.HasPrefix(s, suggested) }):
		return ": add the pass " + suggested + ", which chooses scales that save energy"
	case f.Codes == "int8":
		return ": try other passes for codes, such as --passes round=1, which save more energy and lose more accuracy"
	}
	return ""
}

func lossy(s *plan.Step) bool {
	p, ok := transform.Passes.Lookup(s.Pass)
	return ok && p.Class == pass.Lossy
}

// printNotDropIn prints a warning if only a changed runtime can use the result. The plan's notes name the runtimes
// that load a new format.
func printNotDropIn(w io.Writer, p *plan.Plan) {
	if p == nil || p.DropIn || p.Request.Format != "" {
		return
	}
	term.Remark(w, "NOT DROP-IN", "only a runtime that applies the stored shifts (tensors *"+weights.ShiftSuffix+") computes the right outputs")
}

// missedKinds lists the requests that did not fit the budget, with the layers' kinds.
func missedKinds(p *plan.Plan, layout *arch.Layout) []string {
	var missed term.ByKind
	for _, o := range p.Predictions {
		if o.Missed != "" {
			missed.Add(o.Missed, o.Tensor)
		}
	}
	return missed.Lines(func(tensor string) string { return layout.Kind(tensor) })
}

// changesOf returns the changes of layers. Two changes are listed with their numbers of layers, as in "5 × round=4,
// 1 × none". Of more or longer changes, the text has only the most common one, as in "round=4 (3 of 6)", and whole is
// false.
func changesOf(what map[string]int) (text string, whole bool) {
	if len(what) == 2 {
		list := slices.SortedFunc(maps.Keys(what), func(a, b string) int { return cmp.Or(what[b]-what[a], strings.Compare(b, a)) })
		for i, w := range list {
			list[i] = fmt.Sprintf("%d × %s", what[w], cmp.Or(w, "none"))
		}
		if text := strings.Join(list, ", "); utf8.RuneCountInString(text) <= 36 {
			return text, true
		}
	}
	return mostCommon(what)
}

// mostCommon returns the most common change of layers. If other layers have another change, or none, the text has the
// number of layers, as in "round=4 (1 of 6)", and all is false.
func mostCommon(what map[string]int) (text string, all bool) {
	best, n, layers := "", 0, 0
	for w, c := range what {
		layers += c
		if w != "" && (c > n || c == n && w < best) {
			best, n = w, c
		}
	}
	switch n {
	case 0:
		return "–", true
	case layers:
		return best, true
	}
	return fmt.Sprintf("%s (%d of %d)", best, n, layers), false
}

// lower returns the lower of two ratios. Either may be nil, which is unknown.
func lower(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
