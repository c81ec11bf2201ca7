package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/stats"
)

// TestCardsPage checks that docs/cards.md and its figure agree with the records.
func TestCardsPage(t *testing.T) {
	older, table := olderCardProducts(t), cardTable(t, recorded+"cards")
	goldenfile.Same(t, "../docs/cards.svg", cardsPlot(append(slices.Clone(table), older...)))
	goldenfile.Same(t, "../docs/cards.md", cardsPage(t, older, table))
}

// cardRecords reads the records of TestGPUCards in a folder, by their files.
func cardRecords(t *testing.T, folder string) iter.Seq2[string, cardRecord] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, cardRecord) bool) {
		for _, path := range files {
			var r cardRecord
			read(t, path, &r)
			if r.Card == "" {
				t.Errorf("%s is not from a card", path)
			}
			if !yield(filepath.Base(path), r) {
				return
			}
		}
	}
}

// cardTable has every plan in every phase of the records in a folder, on all cards.
func cardTable(t *testing.T, folder string) (all []cardProduct) {
	t.Helper()
	for file, r := range cardRecords(t, folder) {
		for _, p := range r.Phases {
			for phase, run := range p.runs() {
				for _, v := range run.Variants {
					i := slices.IndexFunc(all, func(p cardProduct) bool { return p.phase == phase && p.plan == v.Name })
					if i < 0 {
						i = len(all)
						all = append(all, cardProduct{product: tableProduct, phase: phase, plan: v.Name})
					}
					all[i].readings = append(all[i].readings, comparison{run: run}.readings(file, v.Name)...)
				}
			}
		}
	}
	return all
}

const tableProduct = "one layer of 8192×8192"

// effects returns the random effects of a plan's change of energy, in per cent.
func (p cardProduct) effects() (effects stats.RandomEffects, cards []cardReading) {
	cards = byCard(p.readings)
	var members []stats.Estimate
	for _, c := range cards {
		members = append(members, c.change)
	}
	return stats.Combine(members), cards
}

// savedShare and savedJoules are savings of a card.
func savedShare(c cardReading) float64  { return -c.change.Value }
func savedJoules(c cardReading) float64 { return -c.change.Value * c.joules }

// shareBetween returns the standard deviation between cards of a saving, as a share of the saving, common to some plans.
func shareBetween(plans []cardProduct, saving func(cardReading) float64) (share float64, cards int) {
	var groups [][]stats.Estimate
	seen := map[string]bool{}
	for _, p := range plans {
		var group []stats.Estimate
		for _, c := range byCard(p.readings) {
			group = append(group, stats.Estimate{Value: math.Log(saving(c)), Error: c.change.Error / -c.change.Value})
			seen[c.card] = true
		}
		groups = append(groups, group)
	}
	return stats.Between(groups...), len(seen)
}

// twoCards times a standard deviation between cards is two standard deviations of the difference of two cards.
const twoCards = 2 * math.Sqrt2

// plansIn are the products of a phase that save, without all-zero weights.
func plansIn(all []cardProduct, phase string) []cardProduct {
	return slices.DeleteFunc(slices.Clone(all), func(p cardProduct) bool { return p.phase != phase || p.plan == "zeros" })
}

// row returns a plan's row of a table. With two cards it has no intervals: Student's t with one degree of freedom is too
// wide to use. With one card it has the standard error of the run.
func (p cardProduct) row() string {
	e, cards := p.effects()
	least := slices.MinFunc(cards, func(a, b cardReading) int { return cmp.Compare(b.change.Value, a.change.Value) })
	most := slices.MinFunc(cards, func(a, b cardReading) int { return cmp.Compare(a.change.Value, b.change.Value) })
	energy, between := percent(e.Mean, 1), fmt.Sprintf("%.2f", e.Between)
	extremes := fmt.Sprintf("%s (%s), %s (%s)", signed(least.change.Value, 2), least.card, signed(most.change.Value, 2), most.card)
	if len(cards) == 1 {
		energy, between, extremes = fmt.Sprintf("%s ± %.1f", energy, e.Error), "–", cards[0].card
	}
	mean, next := "–", "–"
	if len(cards) > 2 {
		mean, next = ends(e.Interval), ends(e.Next)
	}
	plan := p.plan
	if plan != "zeros" && !strings.Contains(plan, " ") {
		plan = "`" + plan + "`"
	}
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %s | %s | %s |\n", p.product, plan, len(cards), energy, mean, next, between, extremes)
}

func ends(v []float64) string { return signed(v[0], 1) + " … " + signed(v[1], 1) }

const cardsHead = "| product | plan | cards | energy | mean of all cards (95 % interval) | a new card (95 % interval) | between cards | least, most |\n|---|---|---|---|---|---|---|---|\n"

func cardsPage(t *testing.T, older, table []cardProduct) []byte {
	var b bytes.Buffer
	cards, unknown := measuredCards(t)
	isZeros := func(p cardProduct) bool { return p.plan == "zeros" }
	prefill, onPrefill := shareBetween(plansIn(older, "prefill"), savedShare)
	decode, onDecode := shareBetween(plansIn(older, "decode"), savedShare)
	joules, _ := shareBetween(plansIn(older, "decode"), savedJoules)
	prefillJoules, _ := shareBetween(plansIn(older, "prefill"), savedJoules)
	if joules > 0.7*decode || prefillJoules < 0.9*prefill {
		t.Errorf("between cards, savings in joules differ by %.3f in decode and %.3f in prefill, shares by %.3f and %.3f: the text says something else", joules, prefillJoules, decode, prefill)
	}
	zeros, onZeros := shareBetween(slices.DeleteFunc(slices.Clone(older), func(p cardProduct) bool { return !isZeros(p) }), savedShare)
	fmt.Fprintf(&b, cardsIntroduction, len(cards), 100*prefill, onPrefill, 100*decode, onDecode, 100*zeros, onZeros, 100*twoCards*prefill, 100*twoCards*decode, 100*joules, 100*prefillJoules)
	b.WriteString("\n## What do six plans save on one layer?\n\n")
	measured, days := 0, map[string]bool{}
	for _, r := range cardRecords(t, recorded+"cards") {
		measured++
		day, _, _ := strings.Cut(r.Date, "T")
		days[day] = true
	}
	fmt.Fprintf(&b, cardsMeasured, measured, strings.Join(slices.Sorted(maps.Keys(days)), ", "))
	cardsTable(&b, table)
	cardsWorth(&b, t, table, map[string]float64{"prefill": prefill, "prefill below the cap": prefill, "decode": decode})
	b.WriteString(cardsCommand)
	b.WriteString("\n## Which older records have one plan on several cards?\n")
	b.WriteString(cardsOlder)
	cardsTable(&b, older)
	var copies []float64
	for _, file := range []string{"frontier-stationary-1", "order-stationary-1", "order-stationary-2"} {
		run := recordedRun(t, file)
		if run.Valid {
			t.Errorf("%s is valid, and the text says that it is not", file)
		}
		copies = append(copies, change(run.Null.RelativeEnergy))
	}
	fmt.Fprintf(&b, cardsNotes, percent(slices.Max(copies), 2), percent(slices.Min(copies), 2), wholeModelWatts(older))
	b.WriteString("\n## Which card made which record?\n\nThe table lists the JSON files of [bench/results/h200](../bench/results/h200), by the date of each card's first record:\n\n| card | first record | files |\n|---|---|---|\n")
	for _, c := range cards {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.id, strings.Replace(strings.TrimSuffix(c.first, "Z"), "T", " ", 1), strings.Join(c.files, ", "))
	}
	fmt.Fprintf(&b, "\nThese JSON files do not record their card: %s. Text files and compressed files are not listed.\n", strings.Join(unknown, ", "))
	return b.Bytes()
}

// cardsWorth writes the precision of each record. differ is the expected standard deviation between cards in a phase, from older
// records, as a share of the saving.
func cardsWorth(b *bytes.Buffer, t *testing.T, table []cardProduct, differ map[string]float64) {
	const plan = "grid=4"
	var rows strings.Builder
	runs, unsteady, savings, clear := 0, 0, 0, 0
	for _, r := range cardRecords(t, recorded+"cards") {
		for _, p := range r.Phases {
			for phase, run := range p.runs() {
				runs++
				if run.Steady != nil && !run.Steady.Reached {
					unsteady++
				}
				e := 100 * standardError(run.Result)
				for _, v := range run.Variants {
					savings++
					if -change(v.RelativeEnergy) > 2*e {
						clear++
					}
				}
				i := slices.IndexFunc(table, func(p cardProduct) bool { return p.phase == phase && p.plan == plan })
				effects, _ := table[i].effects()
				expected := -effects.Mean * differ[phase]
				blocks := float64(run.Null.Blocks)
				needed := math.Ceil(blocks * math.Pow(2*e/expected, 2))
				fmt.Fprintf(&rows, "| %s | %s | %.0f | %s | %.2f | %.2f | %.0f |\n", r.Card, phase, blocks, percent(change(run.Null.RelativeEnergy), 1), e, expected, needed)
			}
		}
	}
	most := fmt.Sprintf("%d of the %d runs", unsteady, runs)
	if unsteady == runs {
		most = fmt.Sprintf("all %d runs", runs)
	}
	fmt.Fprintf(b, cardsRecorded, most, clear, savings, rows.String())
}

// wholeModelWatts returns the savings of the cards that measured the whole model in decode, sorted by the source's power.
func wholeModelWatts(older []cardProduct) string {
	i := slices.IndexFunc(older, func(p cardProduct) bool { return p.product == wholeModel && p.phase == "decode" })
	cards := byCard(older[i].readings)
	slices.SortFunc(cards, func(a, b cardReading) int { return cmp.Compare(a.watts, b.watts) })
	var parts []string
	for _, c := range cards {
		parts = append(parts, fmt.Sprintf("%.1f %% on %s (%.0f W)", -c.change.Value, c.card, c.watts))
	}
	return strings.Join(parts, ", ")
}

// cardsTable writes a table for each phase.
func cardsTable(b *bytes.Buffer, all []cardProduct) {
	for i, p := range all {
		if i == 0 || p.phase != all[i-1].phase {
			fmt.Fprintf(b, "\n%s:\n\n%s", strings.ToUpper(p.phase[:1])+p.phase[1:], cardsHead)
		}
		b.WriteString(p.row())
	}
}

// cardsPlot draws the savings of all plans but zeros, card by card: a panel for each product and phase.
func cardsPlot(all []cardProduct) []byte {
	var panels []chart.Panel
	for _, p := range all {
		if p.plan == "zeros" {
			continue
		}
		title := strings.ReplaceAll(p.product, "`", "") + ": " + p.phase
		i := slices.IndexFunc(panels, func(own chart.Panel) bool { return own.Title == title })
		if i < 0 {
			i = len(panels)
			panels = append(panels, chart.Panel{Title: title, X: chart.Axis{Label: "energy saved in %"}, PartNames: []string{"energy saved"}})
		}
		plan, _, _ := strings.Cut(p.plan, " ")
		for _, c := range byCard(p.readings) {
			panels[i].Bars = append(panels[i].Bars, chart.Bar{Name: plan + ", " + c.card, Parts: []float64{-c.change.Value}})
		}
	}
	return chart.Chart{Title: "Energy saved by the same plan on several cards", Panels: panels, Columns: 2}.SVG()
}
