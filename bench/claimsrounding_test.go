package bench

import (
	"fmt"
	"regexp"
	"slices"
)

// structures are the rows of docs/rounding.md, with their variants in structure-stationary.json.
var structures = []struct{ text, variant string }{
	{"a quarter zeroed, single elements at random", "el25"},
	{"… runs of 16 inputs", "blk1x16_25"},
	{"… blocks of 16×16", "blk16x16_25"},
	{"… whole inputs (columns), every fourth", "colspread25"},
	{"… whole inputs, the last", "colend25"},
	{"… whole outputs (rows)", "rows25"},
	{"half zeroed, whole inputs", "colend50"},
	{"powers of two", "pow2"},
	{"powers of two and zeros on a grid", "p2grid2"},
	{"one magnitude, signs kept", "onemag"},
	{"zeros", "zeros"},
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
	low, high := e.divergenceOverSum()
	return append(list,
		says("| grid σ/4, grid σ/2 | {}, {} |", energy("rtn4"), energy("rtn2")),
		says("Changing values alone saves at most {} of energy:", saved(e.of(file, "onemag"), 1)),
		says("the divergence was {} to {} times the sum (", low, high),
	)
}

// divergenceOverSum returns the range of a whole model's divergence over the sum of its layers' divergences, in a recorded search.
func (e *evidence) divergenceOverSum() (low, high string) {
	e.Helper()
	trial := regexp.MustCompile(`Predicted:(\S+) Divergence:(\S+)`)
	var ratios []float64
	for _, m := range trial.FindAllStringSubmatch(e.text("h200/runner/search.txt"), -1) {
		ratios = append(ratios, e.number(m[2])/e.number(m[1]))
	}
	if len(ratios) < 10 {
		e.Fatalf("%d trials", len(ratios))
	}
	return fmt.Sprintf("%.2f", slices.Min(ratios)), fmt.Sprintf("%.2f", slices.Max(ratios))
}
