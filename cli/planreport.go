package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// layerGroup is the layers of one kind.
type layerGroup struct {
	kind     string
	layers   int
	elements int
	what     map[string]int // treatments and how many layers get them
	snr      *float64       // the lowest
	ratio    predict.Ratio
}

// printPlan shows what a plan does, a row per kind of layer.
func printPlan(w io.Writer, m *weights.Model, plan *transform.Plan, layout *arch.Layout) {
	tab := term.NewTable("layers", "n", "weights", "lossy or compensated", "lowest SNR", "energy, predicted")
	elements := map[string]int{}
	for _, g := range groupLayers(m, plan, layout) {
		tab.Add(g.kind, term.Count(g.layers), term.Count(g.elements), mostCommon(g.what), term.Decibels(g.snr), ratioChange(&g.ratio))
	}
	for _, o := range plan.Outlook {
		t, _ := m.Tensor(o.Tensor)
		elements[o.Tensor] = t.Len()
	}
	total := outlookRatio(plan, elements)
	if total != nil {
		tab.Add("total", "", "", "", "", ratioChange(total))
	}
	tab.Print(w)
	fmt.Fprintln(w)
	if total != nil {
		printRatio(w, total, plan.Request.Workload, plan.Request.Role)
	}
	if note := noSaving(plan, total); note != "" {
		term.Remark(w, "note", note)
	}
	printFound(w, plan)
	printExact(w, plan)
	if leavesAdapters(m, plan) {
		term.Remark(w, "adapters", othersDoNotFit)
	}
	if !plan.DropIn {
		printNotDropIn(w)
	}
	term.Remarks(w, "note", plan.Notes)
	term.Remarks(w, "not done", missedKinds(plan, layout))
}

func groupLayers(m *weights.Model, plan *transform.Plan, layout *arch.Layout) []*layerGroup {
	steps := map[string][]string{}
	for _, s := range plan.Steps {
		if s.Index == "" {
			steps[s.Tensor] = append(steps[s.Tensor], describe(s))
		}
	}
	var list []*layerGroup
	groups := map[string]*layerGroup{}
	for _, o := range plan.Outlook {
		t, _ := m.Tensor(o.Tensor)
		kind := layout.Kind(o.Tensor)
		g := groups[kind]
		if g == nil {
			g = &layerGroup{kind: kind, what: map[string]int{}}
			groups[kind] = g
			list = append(list, g)
		}
		g.layers++
		g.elements += t.Len()
		g.what[strings.Join(steps[o.Tensor], " + ")]++
		g.snr = lower(lower(g.snr, o.SNR), o.InputSNR)
		if o.Before != nil && o.After != nil {
			g.ratio.Add(t.Len(), *o.Before, *o.After)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].kind < list[j].kind })
	return list
}

// lower is the lower of two ratios, either of which may be unknown.
func lower(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// printFound says what the search for a budget of loss saw.
func printFound(w io.Writer, plan *transform.Plan) {
	f := plan.Found
	if f == nil {
		return
	}
	tab := term.NewTable("perplexity may rise by", "energy, estimated")
	for _, p := range f.Frontier {
		tab.Add(fmt.Sprintf("%g %%", 100*p.MaxLoss), term.Signed(100*(p.Energy-1), 1)+" %")
	}
	fmt.Fprintln(w)
	if len(f.Frontier) > 0 {
		tab.Print(w)
		fmt.Fprintln(w)
	}
	t := f.Best()
	if t == nil {
		advice := "allow more with --max-loss"
		if slices.ContainsFunc(f.Trials, func(t transform.Trial) bool { return t.Divergence <= f.Budget }) {
			advice = "the tokens held back cannot tell so small a loss from the budget: give more calibration tokens, or " + advice
		}
		term.Remark(w, "search", "no change of any layer keeps the budget: nothing lossy is done; "+advice)
		return
	}
	interval := ""
	if t.Interval != nil {
		interval = fmt.Sprintf(" (95 %%: %s … %s)", term.Signed(t.Interval[0], 6), term.Signed(t.Interval[1], 6))
	}
	if b := plan.Request.MaxLoss; b != nil {
		term.Remark(w, "budget", fmt.Sprintf("perplexity may rise by %.3g %%", 100*math.Expm1(*b)))
	}
	term.Remark(w, "search", fmt.Sprintf("%s of the whole model; on calibration tokens that were held back its outputs diverge by %.6f of %.6f nats per token, "+
		"and its loss rises by %s%s", term.Plural(len(f.Trials), "trial", "trials"), t.Divergence, f.Budget, term.Signed(t.Loss, 6), interval))
	most := plan.Request.MaxLoss
	switch {
	case most == nil || t.Divergence > 0.8*f.Budget:
	case t.Interval != nil && t.Interval[1] > 0.5**most:
		term.Remark(w, "note", fmt.Sprintf("not all of the budget is spent: the tokens held back tell the loss no better than that interval, whose upper end may not exceed %.6f; "+
			"more calibration tokens would let the search spend more", *most))
	default:
		term.Remark(w, "note", "not all of the budget is spent: these passes have nothing coarser, or nothing between this model and one that is over it")
	}
}

// printExact says what the passes do that keep all values.
func printExact(w io.Writer, plan *transform.Plan) {
	indices := map[string]int{}
	for _, s := range plan.Steps {
		if s.Index != "" {
			indices[s.Pass]++
		}
	}
	var parts []string
	for _, p := range transform.Passes {
		if n := indices[p.Name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s on %s", p.Name, term.Plural(n, "index", "indices")))
		}
	}
	if len(parts) > 0 {
		term.Remark(w, "exact", strings.Join(parts, ", "))
	}
}

// othersDoNotFit is what to know of a result whose weights were moved.
const othersDoNotFit = "those that were trained for the source do not fit the result, unless they are converted along: put one into the source's folder; " +
	"convert --plan OUT/lowtoggle.json does the same again"

// leavesAdapters reports whether what was trained for the source does not fit the result: one in the
// model's folder is converted along.
func leavesAdapters(m *weights.Model, plan *transform.Plan) bool {
	return plan.Moves() && m.Adapter == nil
}

// noSaving says that a plan is predicted to save nothing; empty where it is not. total is its
// prediction, nil where there is none.
func noSaving(plan *transform.Plan, total *predict.Ratio) string {
	const little = 0.0005 // which is shown as 0.0 %
	if total == nil || total.Relative < 1-little {
		return ""
	}
	what := "save nothing"
	if total.Relative > 1+little {
		what = "cost more"
	}
	usual := ""
	if load := plan.Request.Workload; load.Decode == 0 && len(plan.Steps) > 0 && !slices.ContainsFunc(plan.Steps, lossy) {
		usual = fmt.Sprintf(", as is usual of passes that keep the function in %s", load)
	}
	return fmt.Sprintf("predicted to %s%s: keep the source, or try another recipe", what, usual)
}

func lossy(s *transform.Step) bool {
	pass, _ := transform.Lookup(s.Pass)
	return pass != nil && pass.Class == transform.Lossy
}

func printNotDropIn(w io.Writer) {
	term.Remark(w, "NOT DROP-IN", "a runtime must apply the stored shifts (tensors *"+transform.ShiftSuffix+")")
}

// missedKinds says what did not fit the budget, and in which layers.
func missedKinds(plan *transform.Plan, layout *arch.Layout) []string {
	var missed term.ByKind
	for _, o := range plan.Outlook {
		if o.Missed != "" {
			missed.Add(o.Missed, o.Tensor)
		}
	}
	return missed.Lines(func(tensor string) string { return layout.Kind(tensor) })
}

// describe says in a few characters what a step does.
func describe(s *transform.Step) string {
	switch {
	case s.Prune != nil && len(s.Prune.Inputs) == 0:
		return "unread outputs"
	case s.Trellis != nil:
		return "trellis"
	case s.Compensate != nil:
		return "compensated"
	case s.Round != nil && s.Round.Truncate:
		return "truncate " + term.Plural(s.Round.Zeroed, "bit", "bits")
	case s.Round != nil:
		return "round " + term.Plural(s.Round.Zeroed, "bit", "bits")
	case s.Grid != nil && s.Grid.S > 0:
		return fmt.Sprintf("grid σ/%g", s.Grid.S)
	case s.Grid != nil:
		return "grid"
	case s.Zeros != nil:
		return "zero " + s.Zeros.String()
	case s.Shift != nil && s.Shift.Epilogue:
		return "shift (not drop-in)"
	case s.Shift != nil:
		return "shift"
	}
	return s.Pass
}

// mostCommon is the treatment that most layers get; "…" follows where others get another.
func mostCommon(what map[string]int) string {
	best, n := "", -1
	for w, c := range what {
		if c > n || c == n && w < best {
			best, n = w, c
		}
	}
	if best == "" {
		best = "–"
	}
	if len(what) > 1 {
		best += " …"
	}
	return best
}
