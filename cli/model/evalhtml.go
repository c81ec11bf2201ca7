package model

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// page fills the report's page.
func (r *evalReport) page(c *cli.Context) *page.Page {
	first := r.models[0]
	subtitle := ""
	if n := len(r.models) - 1; n > 0 {
		subtitle = "compared with " + term.Plural(n, "other model", "other models")
	}
	p := page.New(c, "Loss of "+modelName(first.Model), subtitle)
	changes := chart.Line{Name: "change of perplexity", Style: chart.Style{Colour: 2, Marker: 1}, Scattered: true, Whiskers: true}
	for i, m := range r.models {
		if i == 0 {
			p.Figure("perplexity, "+modelName(m.Model), perplexity(m.Perplexity), fmt.Sprintf("loss %.6f nats per token", m.Loss), report.Computed)
			continue
		}
		ratio, low, high := m.rise.PerplexityRatio()
		interval := ""
		if finiteInterval(low, high) == nil {
			low, high = ratio, ratio
		} else {
			interval = fmt.Sprintf("95 %%: %s … %s %%", change(low), change(high))
		}
		p.Figure("perplexity, "+modelName(m.Model), change(ratio)+" %", interval, report.Computed)
		if finite(ratio) != nil {
			changes.X, changes.Y = append(changes.X, m.Against.Divergence), append(changes.Y, 100*(ratio-1))
			changes.Low, changes.High = append(changes.Low, 100*(low-1)), append(changes.High, 100*(high-1))
			changes.Titles = append(changes.Titles, m.Model)
		}
	}
	s := p.Section("Loss and perplexity")
	r.print(s)
	if len(changes.X) > 1 {
		s.Picture(chart.Chart{Title: "perplexity over divergence", Legend: []chart.Group{}, Panels: []chart.Panel{{Title: "each model against the first", Lines: []chart.Line{changes},
			X: chart.Axis{Label: "divergence, nats per token", With: []float64{0}}, Y: chart.Axis{Label: "perplexity, % change", With: []float64{0}}}}},
			"Change of perplexity relative to the first model, with its 95 % interval over sequences.")
	}
	p.Origin("loss, perplexity, divergence", report.Computed, fmt.Sprintf("the models on %s tokens, part %s of %s, by %s",
		term.Count(first.Tokens), first.Part, first.TokensFile, r.device()))
	return p
}
