package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// frontierNotes are what the figures of docs/frontier.md mean, on the page below them. {perplexity NAME}
// and {energy NAME} stand for what was read of a point.
const frontierNotes = `
- *Prefill* misses its targets by far, and on these cards values alone cannot meet them: with one magnitude and a
  sign in every weight, no accuracy left, the layers save 5.3 % ± 0.1, with powers of two 5.0 % ± 0.2
  ([rounding.md](rounding.md), structure-stationary.json in the same folder, read on another card of the kind).
  Beyond that only whole inputs and outputs of zeros save, a quarter of all inputs 2.7 %, of all outputs 3.9 %,
  and this model cannot spare them.
- Every row of prefill but zeros draws 691 to 693 W, the cap: energy falls as time does, and energy × time
  about twice as much.
- The design notes' first readings, and the targets set by them, come from another state of the card: what they give
  as −5.6 % (four bits rounded away) reads −2.9 % in [measured.md](measured.md). So a fairer question is by
  what factor the best beats the better of round and grid (*Within each run*): in prefill by far less than was
  asked for, and at 0.5 % hardly to be told from 1; in decode by as much.
- *Decode* reaches its target: {energy decode-full-0.1} at a rise of {perplexity decode-full-0.1}, where −6 % was asked
  for; round alone {energy decode-round-0.1}. The cap is not in the way there.
- *Pruning* inputs fits the calibration tokens and not others: with 0.1 % allowed in prefill it raised perplexity
  by {perplexity full-0.1}, where the compensated trellis alone raised it by {perplexity trellis-c-0.1}. It is in no recipe.
  In decode the points of the same passes stayed within what was allowed.
- The trellis without compensation rose by {perplexity trellis-0.1} with 0.1 % allowed; the conversion's own verdict on
  the evaluation tokens says so (exit status 3).
- Run 1 of prefill and the run of decode took place at the same time, on two cards of one machine; run 2 followed on
  the second. Whether run 1 reads lower because of its card or for what its copy shows cannot be told
  from these files.

## How to repeat it

Each point's command is in frontier-plans.json; *planned in* is for 4 of 32 cores, beside seven other
searches. On another machine, with two cores, three of the plans gave the same bytes when carried out.
Perplexities are from bench/loss.py, the inputs that the card multiplied by from
[bench/activations.py](../bench/activations.py), and the files name measure's commands.
`

var workloadText = map[string]string{stationary: "prefill, stationary", streaming: "prefill, streaming", decode: "decode"}

// signed is a number with its sign and so many decimals.
func signed(v float64, decimals int) string {
	text := fmt.Sprintf("%+.*f", decimals, v)
	if strings.Trim(text, "-0.") == "" {
		text = "+" + text[1:]
	}
	return strings.Replace(text, "-", "−", 1)
}

// percent is a change with its sign.
func percent(v float64, decimals int) string { return signed(v, decimals) + " %" }

// energyCell is a change of energy in per cent, with its interval.
func energyCell(c power.Comparison) string {
	return fmt.Sprintf("%s %% ± %.2f", signed(change(c.RelativeEnergy), 2), 100*halfWidth(c))
}

// String is the change of energy with its interval, marked where the run is not valid.
func (r *frontierReading) String() string {
	if r.run.Valid {
		return energyCell(r.Comparison)
	}
	return energyCell(r.Comparison) + " †"
}

func (r *frontierRun) String() string { return fmt.Sprintf("run %d", r.number) }

// reached is a target and how far the best is from it.
func reached(best *frontierReading, target float64) string {
	text := percent(target, 0)
	if best == nil {
		return text
	}
	short := change(best.RelativeEnergy) - target
	if short <= 0 {
		return text + ": **reached**"
	}
	return fmt.Sprintf("%s: missed by %.2f points", text, short)
}

type printer func(format string, args ...any)

func (f *frontier) page() []byte {
	var b bytes.Buffer
	print := printer(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })
	print(`# The frontier of accuracy and energy

Generated from [bench/results/h200](../bench/results/h200) (frontier-*.json) by %s.
All linear layers of %s, converted by the search for a budget of loss: each point is a strategy, the
passes that the search chose among, and a budget, the rise of perplexity that it was allowed. The search saw
calibration tokens; perplexity here is that on %d evaluation tokens (%.4f before) by
[bench/loss.py](../bench/loss.py), energy that of the products as measured, over the untouched weights';
both with 95 %% intervals.

`, "`go test ./bench -run FrontierPage -update`", "`"+f.Model+"`", f.Tokens, math.Exp(f.Loss))
	f.caption(print)
	f.strategies(print)
	f.targets(print)
	f.factors(print)
	print("\n## Every point\n\nChange of energy, of time, and of energy × time, over the untouched weights; time is that of the run whose energy\n" +
		"counts. A rise of perplexity above what was allowed is bold. A copy of the untouched weights should read 1, with\n" +
		"no more doubt than its interval.\n")
	f.table(print, "Prefill", f.planned("prefill"), append(f.of(stationary), f.of(streaming)...))
	f.table(print, "Decode", f.planned(decode), f.of(decode))
	f.listRuns(print)
	print("\n## Notes\n%s", f.notes())
	return b.Bytes()
}

// caption of the plot.
func (f *frontier) caption(print printer) {
	print("![Measured change of energy over the rise of perplexity, one line for each strategy](frontier.svg)\n\n" +
		"Stationary weights in prefill. Crosses are the targets; points at the left edge rise by 0.01 %% or less.")
	if runs := f.of(stationary); len(runs) > 1 {
		drawn := f.drawn()
		print("\nLines and filled markers are %s's, which has most points; open markers are those of other runs.", drawn)
		if !drawn.Valid {
			print(" The meter does\nnot call %s valid (see *Runs*).", drawn)
		}
	}
	print("\n")
}

func (f *frontier) strategies(print printer) {
	print("\n| strategy | points | passes | what it does |\n|---|---|---|---|\n")
	for _, s := range strategies {
		i := slices.IndexFunc(f.points, func(p *frontierPoint) bool { return p.strategy == s.name })
		if i >= 0 {
			print("| %s | %s-… | `%s` | %s |\n", s.label, s.name, f.points[i].Passes, s.doc)
		}
	}
}

// targets against the best that was read.
func (f *frontier) targets(print printer) {
	print(`
## What a rise of perplexity buys

The least energy measured among the points whose perplexity rose by no more, as measured, whatever they had
been allowed; a target counts as reached by the reading, not by its interval. `)
	if slices.ContainsFunc(f.runs, func(r *frontierRun) bool { return !r.Valid }) {
		print("Where a point is in a valid\nrun, that one counts; † marks readings of a run that is not valid. Readings of two runs rank points badly: for that\n" +
			"see *Within each run*. ")
	}
	print(`Beside it the *design notes'
first readings*, of the better of rounding and grids and of a prototype of the trellis: they were taken in
another state of the card, where prefill read lower and decode higher (see [measured.md](measured.md)).

| workload | perplexity rises by at most | best of round and grid | best of all | target | design notes' first readings: round and grid | … prototype |
|---|---|---|---|---|---|---|
`)
	for _, row := range frontierTargets {
		cell := func(r *frontierReading) string {
			if r == nil {
				return "none"
			}
			return fmt.Sprintf("%s (%s, %s)", r, r.point.Name, percent(r.point.rise, 3))
		}
		first := func(v float64) string {
			if v == 0 {
				return "–"
			}
			return percent(v, 1)
		}
		runs := f.of(row.workload)
		all := f.best(runs, row.rise)
		print("| %s | %.1f %% | %s | %s | %s | %s | %s |\n", workloadText[row.workload], row.rise, cell(f.best(runs, row.rise, "round", "grid")), cell(all),
			reached(all, row.target), first(row.rounded), first(row.trellis))
	}
}

// factors by which the best of all beats what there was before, on one card and in one run.
func (f *frontier) factors(print printer) {
	print(`
### Within each run

The same from each run by itself. The factor is the best of all over the best of round and grid, among the points that
the run has; its ± takes the two intervals as independent. *Asked for* is the target over the design notes' first
reading of round and grid.

| run | perplexity rises by at most | best of round and grid | best of all | factor | asked for |
|---|---|---|---|---|---|
`)
	for _, row := range frontierTargets {
		for _, run := range f.of(row.workload) {
			only := []*frontierRun{run}
			before, all := f.best(only, row.rise, "round", "grid"), f.best(only, row.rise)
			if before == nil || all == nil {
				continue
			}
			saved := func(r *frontierReading) float64 { return 1 - r.RelativeEnergy }
			factor := saved(all) / saved(before)
			doubt := factor * math.Hypot(halfWidth(all.Comparison)/saved(all), halfWidth(before.Comparison)/saved(before))
			if all.point == before.point {
				doubt = 0
			}
			print("| %s, %s | %.1f %% | %s (%s) | %s (%s) | %.2f ± %.2f | %.2f |\n", workloadText[row.workload], run, row.rise,
				before, before.point.Name, all, all.point.Name, factor, doubt, row.target/row.rounded)
		}
	}
}

// planned are the points of a plan's workload.
func (f *frontier) planned(workload string) (points []*frontierPoint) {
	for _, p := range f.points {
		if p.Workload == workload {
			points = append(points, p)
		}
	}
	return points
}

// table of points, with a column for each run.
func (f *frontier) table(print printer, title string, points []*frontierPoint, runs []*frontierRun) {
	if len(points) == 0 {
		return
	}
	print("\n### %s\n\n| strategy | point | allowed | perplexity | energy, predicted |", title)
	for _, r := range runs {
		role := ""
		if r.workload == streaming {
			role = "streaming, "
		}
		mark := ""
		if !r.Valid {
			mark = " †"
		}
		print(" energy, %s%s: card %d, copy %s%s |", role, r, r.card, ratio(r), mark)
	}
	print(" time | energy × time | planned in |\n|%s\n", strings.Repeat("---|", 8+len(runs)))
	for _, p := range points {
		rise := percent(p.rise, 3)
		if p.rise > p.MaxLoss {
			rise = "**" + rise + "**"
		}
		print("| %s | %s | %v %% | %s (%s to %s) | %s |", strategies[strategyIndex(p.strategy)].label, p.Name, p.MaxLoss,
			rise, signed(p.low, 3), signed(p.high, 3), percent(change(p.Predicted), 2))
		for _, run := range runs {
			cell := "–"
			if r := f.reading(p, []*frontierRun{run}); r != nil {
				cell = r.String()
			}
			print(" %s |", cell)
		}
		m := f.reading(p, f.of(p.home()))
		print(" %s | %s | %.0f s |\n", percent(change(m.RelativeTime), 2), percent(change(cmp.Or(m.EDP, m.RelativeEnergy*m.RelativeTime)), 2), p.Seconds)
	}
}

// ratio of a copy to the untouched weights.
func ratio(r *frontierRun) string {
	return fmt.Sprintf("%.4f ± %.4f", r.Null.RelativeEnergy, halfWidth(r.Null))
}

// listRuns says how sure each is, the floor that it saw, and what the meter said of it.
func (f *frontier) listRuns(print printer) {
	print("\n## Runs\n\n*Copy* is what a copy of the untouched weights read, *zeros* what weights of zero did: the floor. Cards are\nnumbered for this page; times are UTC.\n\n" +
		"| run | file | card | kind, driver, begun | copy | zeros | power before | power of the points | the meter says |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range f.runs {
		zeros, says := "–", "valid"
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range r.Variants {
			if variantName(v) == "zeros" {
				zeros = energyCell(v)
				continue
			}
			watts := cmp.Or(v.Watts, r.Baseline.Watts*v.RelativeEnergy/v.RelativeTime)
			low, high = min(low, watts), max(high, watts)
		}
		if !r.Valid {
			says = "† **not valid**: " + strings.Join(r.Invalid, "; ")
		}
		drew := fmt.Sprintf("%.0f to %.0f W", low, high)
		if math.Round(low) == math.Round(high) {
			drew = fmt.Sprintf("%.0f W", low)
		}
		begun := strings.Replace(r.Date, "T", " ", 1)
		begun = begun[:min(len(begun), len("2006-01-02 15:04"))]
		print("| %s, %s | %s | %d | %s, %s, %s | %s | %s | %.0f W | %s | %s |\n", workloadText[r.workload], r, strings.TrimSuffix(r.file, ".json"), r.card,
			r.GPU, r.Card.Driver, begun, ratio(r), zeros, r.Baseline.Watts, drew, says)
	}
	for _, r := range f.runs {
		if !r.Valid {
			n := r.Null.Interval
			print("\n† The meter does not call %s of %s valid.", r, workloadText[r.workload])
			if miss := 100 * max(n[0]-1, 1-n[1]); miss > 0 {
				print(" The interval of its copy misses 1 by %.2f %% of energy, as one honest\n"+
					"run's in twenty does. The copy read %s, and all its points may be off by as much.", miss, percent(change(r.Null.RelativeEnergy), 2))
			}
			print("\n")
		}
	}
	for i, a := range f.runs {
		for _, b := range f.runs[i+1:] {
			if a.workload == b.workload {
				f.agreement(print, a, b)
			}
		}
	}
}

// agreement of two runs of a workload on the points that both have.
func (f *frontier) agreement(print printer, a, b *frontierRun) {
	var both []string
	low, high := math.Inf(1), 0.0
	for name, m := range a.measured {
		if n, ok := b.measured[name]; ok {
			both = append(both, name)
			d := 100 * math.Abs(m.RelativeEnergy-n.RelativeEnergy)
			low, high = min(low, d), max(high, d)
		}
	}
	by := func(r *frontierRun) []string {
		return slices.SortedFunc(slices.Values(slices.Sorted(slices.Values(both))), func(x, y string) int {
			return cmp.Compare(r.measured[x].RelativeEnergy, r.measured[y].RelativeEnergy)
		})
	}
	cards := "on the same card"
	if a.card != b.card {
		cards = "on different cards"
	}
	switch order := "their order is the same"; len(both) {
	case 0:
	case 1:
		print("\nThe one model that is in both %s and %s differs by %.2f points, %s.\n", a, b, high, cards)
	default:
		if !slices.Equal(by(a), by(b)) {
			order = "their order is not the same"
		}
		print("\nThe %d models that are in both %s and %s, %s, differ by %.2f to %.2f points; %s.\n", len(both), a, b, cards, low, high, order)
	}
}

// notes with what was read in place of names.
func (f *frontier) notes() string {
	var pairs []string
	for _, p := range f.points {
		pairs = append(pairs, "{perplexity "+p.Name+"}", fmt.Sprintf("%.3f %%", p.rise),
			"{energy "+p.Name+"}", f.reading(p, f.of(p.home())).String())
	}
	return strings.NewReplacer(pairs...).Replace(frontierNotes)
}
