package card

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// random names the baseline of predictions.
const random = "random weights"

// output writes the file that -o names.
func (f *predictRequest) output(c *cli.Context, r *predict.Report, gpu string) error {
	var list []page.Ratio
	for _, p := range r.Predictions {
		list = append(list, page.Ratio{Name: p.Name, Relative: p.Relative, Interval: p.Interval[:], How: report.Predicted})
	}
	title := "predicted for " + gpu
	if path := c.String("output"); path == "" || outfile.KindOf(path, outfile.Pictures...) != outfile.HTML {
		return outfile.WriteChart(c, path, page.WideRatios(title+": "+f.title(r.Predictions), random, list))
	}
	p := page.New(c, "Predicted energy of matrix products", f.title(r.Predictions))
	for i, one := range r.Predictions {
		if i == 4 { // the chart shows the others
			break
		}
		detail := page.Between(one.Interval[:]) + ", relative to " + random
		if one.Joules != nil && one.Watts != nil {
			detail += fmt.Sprintf("; %s at %.0f W", threeDigits(*one.Joules), *one.Watts)
		}
		p.Figure(one.Name, term.Change(one.Relative), detail, report.Predicted)
	}
	s := p.Section("Energy")
	s.Picture(page.Ratios(title, random, list), "Energy of one pass relative to random weights, with 95 % intervals.")
	f.print(s, r, gpu)
	for _, one := range r.Predictions {
		p.Origin("energy, time, power and clock", report.Predicted, "calibration "+one.Calibration)
		if f.layers || len(one.Layers) < 2 {
			continue
		}
		tab := term.NewTable("layer", "energy", "95 %", "time", "energy\nper pass", "power", "clock")
		for _, l := range one.Layers {
			tab.Add(predictionCells(l.Layer, l.Prediction)...)
		}
		tab.Print(p.Section("Layers of " + one.Name).Folded(term.Plural(len(one.Layers), "layer", "layers")))
	}
	return p.Write(c, c.String("output"))
}
