package model

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/chart"
	"github.com/lowtoggle/lowtoggle/internal/report"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// writeConvertPage writes the report of a conversion. It samples the values of source and result.
func writeConvertPage(c *cli.Context, path string, m *weights.Model, r *transform.Conversion, args []string, o transform.Options, took time.Duration) (err error) {
	out, err := flag.OpenModel(c.Context, args[1])
	if err != nil {
		return err
	}
	defer func() {
		if failed := out.Close(); err == nil {
			err = failed
		}
	}()
	all, err := inspect.Sample(c.Context, m, out, o.Family, o.Workers)
	if err != nil {
		return err
	}
	p, layout, did := page.New(c, "Conversion of "+modelName(args[0]), args[0]+" → "+args[1]), layoutOf(c, m), r.Plan
	total := transform.Predicted(m, did)
	var loss *lossJSON
	if r.Loss != nil {
		loss = newLoss(r.Loss)
	}
	addPredicted(p, total, did.Request.Workload.String())
	addLoss(p, loss, c.String("tokens"))
	p.Figure("time taken", term.Duration(took), term.Size(sizeOf(m, args[1], r.Manifest))+" written", report.Computed)

	s := p.Section("Changes by kind of layer")
	printPlan(s, m, did, layout)
	if total != nil {
		over, base := "the source's", "the source"
		if did.Request.Format != "" {
			over, base = "the nearest codes'", transform.FormatBaseline
		}
		s.Picture(page.Ratios("energy after the conversion", over, kindRatios(m, did, layout, total)),
			"Predicted energy of the linear layers, relative to "+base+", with 95 % intervals.")
	}
	if loss != nil {
		loss.print(p.Section("Accuracy"))
	}
	addSearch(p, r, total)
	addValues(p, all)
	if rows := layerTable(did); len(rows.Rows) > 0 {
		each := p.Section("Every layer").Folded(term.Plural(len(rows.Rows), "layer", "layers"))
		rows.Print(each)
		term.Remark(each, "energy", "predicted energy of the layer's matrix products, relative to random normal weights")
		p.Origin("SNR of layers", report.Computed, "the weights of source and result; in a column \"on inputs\", also held-out calibration tokens")
	}
	p.Origin("time", report.Computed, "this machine's clock")
	return p.Write(c, path)
}

// addPredicted adds a predicted energy to the main figures.
func addPredicted(p *page.Page, r *predict.Ratio, workload string) {
	if r.Known() == nil {
		return
	}
	p.Figure("energy of the linear layers, "+workload, term.Change(r.Relative), page.Between(r.Interval[:]), report.Predicted)
	p.Origin("predicted energies", report.Predicted, "calibration "+r.Calibration)
}

// addLoss adds the change of perplexity to the main figures. l may be nil.
func addLoss(p *page.Page, l *lossJSON, file string) {
	if l == nil {
		return
	}
	ratio, low, high := l.rise.PerplexityRatio()
	interval := ""
	if l.Interval != nil {
		interval = fmt.Sprintf("95 %%: %s … %s %%", change(low), change(high))
	}
	p.Figure("perplexity", change(ratio)+" %", interval, report.Computed)
	p.Origin("perplexity", report.Computed, fmt.Sprintf("both models on %s tokens, part %s of %s", term.Count(l.Tokens), l.Part, file))
}

// kindRatios returns the predicted energies of each kind of layer and of all layers together.
func kindRatios(m *weights.Model, p *plan.Plan, layout *arch.Layout, total *predict.Ratio) (list []page.Ratio) {
	for _, k := range transform.Passes.Summary(m, p, layout) {
		if e := k.Energy; e.Known() != nil {
			list = append(list, page.Ratio{Name: k.Kind, Relative: e.Relative, Interval: e.Interval[:], How: report.Predicted})
		}
	}
	return append(list, page.Ratio{Name: "total", Relative: total.Relative, Interval: total.Interval[:], How: report.Predicted})
}

// addSearch draws accuracy against energy: the models of the search's trials, the chosen model, and estimates for
// other budgets.
func addSearch(p *page.Page, r *transform.Conversion, total *predict.Ratio) {
	f := r.Plan.Search
	if f == nil || len(f.Trials) == 0 {
		return
	}
	share := func(nats float64) float64 { return 100 * math.Expm1(nats) }
	point := func(l *chart.Line, rise float64, interval *[2]float64, energy float64, title string) {
		if interval == nil {
			interval = &[2]float64{rise, rise}
		}
		l.X, l.Y, l.Titles = append(l.X, share(rise)), append(l.Y, 100*(energy-1)), append(l.Titles, title)
		l.XLow, l.XHigh = append(l.XLow, share(interval[0])), append(l.XHigh, share(interval[1]))
	}
	tried := chart.Line{Name: "tried by the search", Style: chart.Style{Colour: 2, Marker: 1, Hollow: true}, Scattered: true}
	taken := chart.Line{Name: "chosen", Style: chart.Style{Colour: 3, Marker: 4}, Scattered: true}
	best := f.Best()
	for i := range f.Trials {
		t, to := &f.Trials[i], &tried
		if t == best {
			to = &taken
		}
		point(to, t.Loss, t.Interval, t.Energy, fmt.Sprintf("divergence %.6f nats per token", t.Divergence))
	}
	estimates := chart.Line{Name: "lowest energy for each budget, predicted", Style: chart.Style{Colour: 0, Dashes: 1}}
	for _, b := range f.Frontier {
		if most := r.Plan.Request.MaxLoss; most != nil && b.MaxLoss > 4*math.Expm1(*most) {
			continue // points at the same place cover each other
		}
		estimates.X, estimates.Y = append(estimates.X, 100*b.MaxLoss), append(estimates.Y, 100*(b.Energy-1))
	}
	panel := chart.Panel{Title: "energy against perplexity", X: chart.Axis{Label: "rise of perplexity, %"}, Y: chart.Axis{Label: "energy, % change"}}
	for _, l := range []chart.Line{estimates, tried, taken} {
		if len(l.X) > 0 {
			panel.Lines = append(panel.Lines, l)
		}
	}
	if r.Loss != nil && total != nil {
		evaluated := chart.Line{Name: "chosen, on evaluation tokens", Style: chart.Style{Colour: 4, Marker: 3}, Scattered: true}
		interval := finiteInterval(r.Loss.Low, r.Loss.High)
		point(&evaluated, r.Loss.Difference, interval, total.Relative, "the result on evaluation tokens")
		panel.Lines = append(panel.Lines, evaluated)
	}
	if b := r.Plan.Request.MaxLoss; b != nil {
		panel.Marks = append(panel.Marks, chart.Mark{X: share(*b), Label: "budget"})
	}
	legend := chart.Group{}
	for _, l := range panel.Lines {
		legend.Entries = append(legend.Entries, chart.Entry{Name: l.Name, Style: l.Style, Scattered: l.Scattered})
	}
	s := p.Section("Accuracy against energy")
	s.Picture(chart.Chart{Title: "energy against perplexity", Panels: []chart.Panel{panel}, Legend: []chart.Group{legend}, Width: report.Narrow},
		"Models that the search tried, on held-out calibration tokens. Bars are 95 % intervals of the rise of perplexity. The line is the lowest predicted energy for each budget.")
	trialTable(f).Print(s)
	p.Origin("rises of perplexity in the search", report.Computed, "whole models on held-out calibration tokens")
}

// trialTable lists the models of the search's trials.
func trialTable(f *plan.Search) *term.Table {
	tab := term.NewTable("model", "energy,\npredicted", "divergence,\nnats per token", "rise of loss,\nnats per token", "95 % interval")
	best := f.Best()
	for i := range f.Trials {
		t, name, interval := &f.Trials[i], fmt.Sprintf("trial %d", i+1), "–"
		if t == best {
			name += ", chosen"
		}
		if t.Interval != nil {
			interval = term.Signed(t.Interval[0], 6) + " … " + term.Signed(t.Interval[1], 6)
		}
		tab.Add(name, term.Change(t.Energy), fmt.Sprintf("%.6f", t.Divergence), term.Signed(t.Loss, 6), interval)
	}
	return tab
}

// layerTable has a row for every layer of a plan.
func layerTable(p *plan.Plan) *term.Table {
	steps := map[string][]string{}
	for _, s := range p.Steps {
		if s.Index == "" {
			steps[s.Tensor] = append(steps[s.Tensor], transform.Passes.Describe(s))
		}
	}
	tab := term.NewTable("layer", "change of values", lowestHead(p), "energy before", "energy after")
	tab.Whole = true
	for _, o := range p.Predictions {
		before, after := "–", "–"
		if o.Before != nil && o.After != nil {
			before, after = fmt.Sprintf("%.3f", o.Before.Relative), fmt.Sprintf("%.3f", o.After.Relative)
		}
		did := strings.Join(steps[o.Tensor], " + ")
		if did == "" {
			did = "–"
		}
		tab.Add(o.Tensor, did, term.Decibels(o.LowestSNR()), before, after)
	}
	return tab
}
