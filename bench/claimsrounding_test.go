package bench

import (
	"fmt"
	"regexp"
	"slices"
)

// structures are the rows of docs/rounding.md, with their variants in structure-stationary.json.
var structures = []struct{ text, variant string }{
	{"a quarter of the elements zeroed, at random", "el25"},
	{"a quarter zeroed, runs of 16 inputs at random", "blk1x16_25"},
	{"a quarter zeroed, blocks of 16×16 at random", "blk16x16_25"},
	{"a quarter zeroed, every fourth input (column)", "colspread25"},
	{"a quarter zeroed, the last inputs", "colend25"},
	{"a quarter zeroed, the last outputs (rows)", "rows25"},
	{"half zeroed, the last inputs", "colend50"},
	{"powers of two", "pow2"},
	{"powers of two and zeros on a grid", "p2grid2"},
	{"one magnitude for all weights, signs kept", "onemag"},
	{"all weights zero", "zeros"},
}

func roundingClaims(e *evidence) []claim {
	const file = "structure-stationary"
	energy := func(variant string) string {
		c := e.of(file, variant)
		return reading{c.RelativeEnergy, c.Interval}.String()
	}
	var list []claim
	for _, s := range structures {
		list = append(list, says("\n| "+s.text+" | {} |", energy(s.variant)))
	}
	models, low, high := e.divergenceOverSum()
	return append(list,
		says("| grid of step σ/4, grid of step σ/2 (σ: root mean square of a row) | {}, {} |", energy("rtn4"), energy("rtn2")),
		says("the largest saving is {}: all", saved(e.of(file, "onemag"), 1)),
		says("For the {} models that two searches tried, the divergence was {} to {} times the sum\n(", models, low, high),
	)
}

// divergenceOverSum returns the number of models that the recorded searches tried, and the range of a model's divergence over the sum of
// its layers' divergences.
func (e *evidence) divergenceOverSum() (models, low, high string) {
	e.Helper()
	trial := regexp.MustCompile(`Predicted:(\S+) Divergence:(\S+)`)
	var ratios []float64
	for _, m := range trial.FindAllStringSubmatch(e.text("h200/runner/search.txt"), -1) {
		ratios = append(ratios, e.number(m[2])/e.number(m[1]))
	}
	if len(ratios) < 10 {
		e.Fatalf("%d trials", len(ratios))
	}
	return fmt.Sprint(len(ratios)), fmt.Sprintf("%.2f", slices.Min(ratios)), fmt.Sprintf("%.2f", slices.Max(ratios))
}
