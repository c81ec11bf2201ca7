package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// frontierNotes explain the figures of docs/frontier.md. {perplexity NAME} and {energy NAME} stand for a point's figures.
const frontierNotes = `
- *Prefill* saves little energy, and changed values cannot save much more on these cards. Weights of one magnitude, with only
  their signs left, save {structure onemag} of energy, and make the model useless. Weights rounded to powers of two save
  {structure pow2} ([rounding.md](rounding.md), structure-stationary.json, measured on another H200). Zero rows or columns
  save more only if there are many. Zeros in a quarter of all inputs save {structure colend25}, zeros in half of all inputs
  {structure colend50}, and zeros in a quarter of all outputs {structure rows25}. With so many zero rows or columns, this model is useless, too.
- In prefill, all points draw the power of the cap. So energy falls as much as time, and energy × time falls about twice as much.
- In *decode*, trellis + compensated + pruned changes energy by {energy decode-full-0.1} at a perplexity rise of {perplexity decode-full-0.1}.
  ` + "`round`" + ` alone changes energy by {energy decode-round-0.1} at a rise of {perplexity decode-round-0.1}. The power cap does not limit decode.
- *Pruning* inputs overfits the calibration tokens. With a budget of {allowed full-0.1} in prefill, the compensated trellis raised
  perplexity by {perplexity full-0.1} with pruning, and by {perplexity trellis-c-0.1} without pruning. So no recipe prunes. In
  decode, the points with pruning stayed within their budgets.
- With a budget of {allowed trellis-0.1}, the trellis without compensation raised perplexity by {perplexity trellis-0.1}. If the rise
  on the evaluation tokens is above the budget, ` + "`convert`" + ` exits with status 3.
- In decode the predicted savings of energy are {decode too high} percentage points too high
  ([cost-accuracy.md](cost-accuracy.md)).
- Run 1 of prefill and the run of decode took place at the same time, on different cards of one machine. Run 2 of prefill followed
  on the card of the run of decode. The energies of run 1 may be lower because of the card, or because of the error that the copy
  of run 1 shows. These records cannot distinguish the two reasons.

## How to repeat the measurements

Each point's command is in frontier-plans.json. The column *planned in* is the time of a search on 4 of 32 cores, while seven other
searches ran. Three of the plans were also applied on another machine with two cores, and gave the same bytes.
[bench/loss.py](../bench/loss.py) measures perplexity, and [bench/activations.py](../bench/activations.py) writes the activations.
Each file of results contains the command of its measurement.
`

var workloadText = map[string]string{stationary: "prefill, stationary", streaming: "prefill, streaming", decode: "decode"}

// signed returns a number with its sign and so many decimals.
func signed(v float64, decimals int) string {
	text := fmt.Sprintf("%+.*f", decimals, v)
	if strings.Trim(text, "-0.") == "" {
		text = "+" + text[1:]
	}
	return strings.Replace(text, "-", "−", 1)
}

// percent returns a change with its sign.
func percent(v float64, decimals int) string { return signed(v, decimals) + " %" }

// energyCell returns a change of energy in per cent, with its interval.
func energyCell(c power.Comparison) string {
	return fmt.Sprintf("%s %% ± %.2f", signed(change(c.RelativeEnergy), 2), 100*halfWidth(c))
}

// String returns the change of energy with its interval, marked where the run is not valid.
func (r *frontierReading) String() string {
	if r.run.Valid {
		return energyCell(r.Comparison)
	}
	return energyCell(r.Comparison) + " †"
}

func (r *frontierRun) String() string { return fmt.Sprintf("run %d", r.number) }

type printer func(format string, args ...any)

func (f *frontier) page() []byte {
	var b bytes.Buffer
	print := printer(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })
	print(`# What can be saved for a given rise of perplexity?

Generated from [bench/results/h200](../bench/results/h200) (frontier-*.json) by %s.

All linear layers of %s, a small trained Llama ([results.md](results.md)), were converted with `+"`--max-loss`"+`, once for each point
of this page. A point has a strategy and a budget. The strategy is the set of passes that the search may use. The budget is the
largest allowed rise of perplexity. The search used calibration tokens only. Perplexity is measured on %d evaluation tokens by
[bench/loss.py](../bench/loss.py), and is %.4f before conversion. Energy is measured for the GEMMs of all linear layers,
relative to the original weights. Perplexity and energy have 95 %% intervals. The plans are
from 2026-11-21 or earlier; a later version may choose other values for the same command.

`, "`go test ./bench -run FrontierPage -update`", "`"+f.Model+"`", f.Tokens, math.Exp(f.Loss))
	f.caption(print)
	f.strategies(print)
	f.bought(print)
	f.factors(print)
	print("\n## Every point\n\nThe tables give the changes of energy, of time, and of energy × time, relative to the original weights. If a point has\n" +
		"several readings, its time is from a valid run. A rise of perplexity above its budget is bold. The head of each energy column\n" +
		"gives the energy of a copy of the original weights, relative to these weights. The copy's interval should contain 1.\n")
	f.table(print, "Prefill", f.planned("prefill"), append(f.of(stationary), f.of(streaming)...))
	f.table(print, "Decode", f.planned(decode), f.of(decode))
	f.listRuns(print)
	print("\n## Notes\n%s", f.explained())
	return b.Bytes()
}

// caption explains the plot.
func (f *frontier) caption(print printer) {
	print("![Measured change of energy over the rise of perplexity, one line for each strategy](frontier.svg)\n\n" +
		"The plot shows prefill with *stationary* weights (the A operand of cuBLAS, where runtimes put weights).")
	if slices.ContainsFunc(f.of(stationary), func(r *frontierRun) bool {
		return slices.ContainsFunc(f.points, func(p *frontierPoint) bool { _, ok := r.measured[p.Name]; return ok && p.rise <= leastRise })
	}) {
		print(" Points at the left edge raise perplexity by %v %% or less.", leastRise)
	}
	if runs := f.of(stationary); len(runs) > 1 {
		drawn := f.drawn()
		print("\nLines and filled markers belong to %s, which has the most points. Hollow markers belong to other runs.", drawn)
		if !drawn.Valid {
			print("\nRun %d is marked invalid (see *Runs*).", drawn.number)
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

// bought shows the best readings for each rise.
func (f *frontier) bought(print printer) {
	print(`
## What a rise of perplexity saves

Each row shows the point of least energy among the points whose measured perplexity rose by at most the stated share. The
cells give the change of energy, the point and the rise of perplexity. The budgets of these points may
differ.`)
	if slices.ContainsFunc(f.runs, func(r *frontierRun) bool { return !r.Valid }) {
		print(" If a point has several readings, a reading of a\nvalid run is used; † marks a reading of an invalid run. To rank points, use the next table, which compares points of one run.")
	}
	print(`

| workload | perplexity rises by at most | best of round and grid | best of all |
|---|---|---|---|
`)
	for _, row := range frontierRises {
		cell := func(r *frontierReading) string {
			if r == nil {
				return "none"
			}
			return fmt.Sprintf("%s (%s, %s)", r, r.point.Name, percent(r.point.rise, 3))
		}
		runs := f.of(row.workload)
		print("| %s | %.1f %% | %s | %s |\n", workloadText[row.workload], row.rise, cell(f.best(runs, row.rise, "round", "grid")), cell(f.best(runs, row.rise)))
	}
}

// factors compares the best point of each run with the best of round and grid of the same run.
func (f *frontier) factors(print printer) {
	print(`
### Savings within each run

This table compares points of one run. The cells give the change of energy and the point. The factor is the saving of the best
point divided by the saving of the best point of round and grid. The factor's ± treats the two intervals as independent.

| run | perplexity rises by at most | best of round and grid | best of all | factor |
|---|---|---|---|---|
`)
	for _, row := range frontierRises {
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
			print("| %s, %s | %.1f %% | %s (%s) | %s (%s) | %.2f ± %.2f |\n", workloadText[row.workload], run, row.rise,
				before, before.point.Name, all, all.point.Name, factor, doubt)
		}
	}
}

// planned returns the points of a plan's workload.
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
		print(" energy, %s%s: %s, copy %s%s |", role, r, r.Card.ID(), ratio(r), mark)
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

// listRuns prints each run's copy, its floor, and the meter's validity.
func (f *frontier) listRuns(print printer) {
	print("\n## Runs\n\n*Copy* is the energy with a copy of the original weights, relative to these weights. *Zeros* is the change of energy with\nall-zero weights, which take the least possible energy. *Power before* is the power with the original weights. Times are UTC.\n\n" +
		"| run | file | card | driver, begun | copy | zeros | power before | power of the points | validity |\n|---|---|---|---|---|---|---|---|---|\n")
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
			says = "† **invalid**: " + strings.Join(r.Invalid, "; ")
		}
		drew := fmt.Sprintf("%.0f to %.0f W", low, high)
		if math.Round(low) == math.Round(high) {
			drew = fmt.Sprintf("%.0f W", low)
		}
		begun := strings.Replace(r.Date, "T", " ", 1)
		begun = begun[:min(len(begun), len("2006-01-02 15:04"))]
		print("| %s, %s | %s | %s | %s, %s | %s | %s | %.0f W | %s | %s |\n", workloadText[r.workload], r, strings.TrimSuffix(r.file, ".json"), r.Card.ID(),
			r.Card.Driver, begun, ratio(r), zeros, r.Baseline.Watts, drew, says)
	}
	for _, r := range f.runs {
		if !r.Valid {
			n := r.Null.Interval
			print("\n† Run %d (%s) is invalid.", r.number, workloadText[r.workload])
			if miss := 100 * max(n[0]-1, 1-n[1]); miss > 0 {
				print(" The interval of the copy's energy ends %.2f %% away from the energy of the\noriginal weights. %s\n"+
					"In run %d the copy's energy differs by %s from the energy of the original weights. All points of the run may be\noff by as much.", miss, f.misses, r.number, percent(change(r.Null.RelativeEnergy), 2))
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

// agreement compares two runs of a workload on the points that both have.
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
	if a.Card.UUID != b.Card.UUID {
		cards = "on different cards"
	}
	switch order := "is the same"; len(both) {
	case 0:
	case 1:
		print("\nOne model was measured in both %s and %s. Between the runs, its energy differs by %.2f percentage points, %s.\n", a, b, high, cards)
	default:
		if !slices.Equal(by(a), by(b)) {
			order = "is not the same"
		}
		print("\n%d models were measured in both %s and %s, %s. Between the runs, a model's energy differs by %.2f to %.2f\npercentage points; the order of the models %s.\n", len(both), a, b, cards, low, high, order)
	}
}

// explained returns frontierNotes with figures in place of names.
func (f *frontier) explained() string {
	pairs := f.notes
	for _, p := range f.points {
		pairs = append(pairs, "{perplexity "+p.Name+"}", fmt.Sprintf("%.3f %%", p.rise), "{allowed "+p.Name+"}", fmt.Sprintf("%v %%", p.MaxLoss),
			"{energy "+p.Name+"}", f.reading(p, f.of(p.home())).String())
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range f.planned(decode) {
		off := 100 * (f.reading(p, f.of(decode)).RelativeEnergy - p.Predicted)
		low, high = min(low, off), max(high, off)
	}
	pairs = append(pairs, "{decode too high}", fmt.Sprintf("%.2f to %.2f", low, high))
	return strings.NewReplacer(pairs...).Replace(frontierNotes)
}

// misses of copies in the recorded comparisons of at least nullBlocks blocks.
const nullBlocks = 4

func nullMisses(t *testing.T) string {
	t.Helper()
	all, below, above := 0, 0, 0
	err := filepath.WalkDir(recorded, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".json" {
			return err
		}
		for _, c := range comparisonsIn(t, file) {
			for _, r := range append([]*measure.Result{c.run}, c.run.AtDuty...) {
				switch n := r.Null; {
				case n.Blocks < nullBlocks || len(n.Interval) != 2:
					continue
				case n.Interval[1] < 1:
					below++
				case n.Interval[0] > 1:
					above++
				}
				all++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("The records of H200s contain %d comparisons of a copy with the original weights, each in at\nleast %d blocks of readings. The interval of the copy's relative energy is below 1 in %d comparisons, and above 1 in %d\ncomparisons. By chance alone, one interval in twenty does not contain 1.",
		all, nullBlocks, below, above)
}
