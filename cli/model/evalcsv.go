package model

import (
	"strconv"

	"github.com/lowtoggle/lowtoggle/cli/term"
)

// table is the output of eval --csv: a row for every model. Losses are in nats per token. Differences and ratios are
// relative to the first model, whose own cells are empty.
func (r *evalReport) table() [][]string {
	table := [][]string{{"model", "loss", "perplexity", "loss_difference", "difference_low", "difference_high", "perplexity_ratio", "ratio_low", "ratio_high",
		"divergence", "tokens", "part", "tokens_file", "device", "seconds"}}
	ends := func(interval *[2]float64) (low, high string) {
		if interval == nil {
			return "", ""
		}
		return term.Ends(interval[:])
	}
	for _, m := range r.models {
		row := []string{m.Model, term.Cell(m.Loss), term.CellOf(m.Perplexity), "", "", "", "", "", "", ""}
		if a := m.Against; a != nil {
			low, high := ends(a.Interval)
			least, most := ends(a.PerplexityInterval)
			row = append(row[:3], term.Cell(a.LossDifference), low, high, term.CellOf(a.PerplexityRatio), least, most, term.Cell(a.Divergence))
		}
		table = append(table, append(row, strconv.Itoa(m.Tokens), m.Part, m.TokensFile, m.Device, term.Cell(m.Seconds)))
	}
	return table
}
