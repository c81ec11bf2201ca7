package card

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/outfile"
	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// measuredOutput writes the file of -o for a comparison of matrix products. about prints the report.
func measuredOutput(c *cli.Context, r *measure.CardResults, title string, about func(io.Writer)) error {
	p := page.New(c, "Measured energy of matrix products", title)
	var list []page.Ratio
	over := ""
	for _, one := range r.Cards {
		known := knownHow(one.Simulated)
		p.Origin("energy, time, power and clock", known, cardOrigin(one.Name, one.GPU, one.Card.ID())+", "+one.Date)
		if one.Deviation != nil {
			p.Origin("relative error of results", report.Computed, "the card's results compared with the CPU's")
		}
		over = one.Baseline.Name
		for _, res := range append([]*measure.Result{one.Result}, one.AtDuty...) {
			duty := ""
			if res.Pacing != nil && len(one.AtDuty) > 0 {
				duty = fmt.Sprintf(", duty %.3g", res.Pacing.Duty)
			}
			for i, l := range res.Loads() {
				if i == 0 || l.Blocks == 0 {
					continue
				}
				name := l.Name + prefixed(one.Name) + duty
				list = append(list, page.Ratio{Name: name, Relative: l.RelativeEnergy, Interval: l.Interval, How: known})
				if i > 1 && len(p.Main) < 4 { // the chart shows the others
					detail := strings.TrimPrefix(page.Between(l.Interval)+", relative to "+over, ", ")
					p.Figure(name, term.MeasuredChange(l.RelativeEnergy, l.Interval), detail+"; "+joulesBeside(l.Joules, res.Loads()[0].Joules), known)
				}
			}
		}
	}
	return ratiosOutput(c, p, "energy: "+title, over, list, about)
}

// servedOutput writes the file that -o names for a comparison of servers.
func servedOutput(c *cli.Context, r *serve.Result) error {
	p, known := page.New(c, "Energy per token of servers", serveReport{r}.title()), knownHow(strings.Contains(c.String("device"), simulatedDevice))
	p.Origin("joules per token, power, speed and latencies", known, cardOrigin("", r.GPU, cardIDs(r.Cards))+", "+r.Date)
	var list []page.Ratio
	for i, l := range comparisonsOf(r) {
		if l.Joules > 0 && len(p.Main) < 4 {
			p.Figure("joules per output token, "+l.Name, joulesBeside(l.Joules, r.Baseline.Joules), page.Between(l.Interval), known)
		}
		if i > 0 && l.Passes > 0 {
			list = append(list, page.Ratio{Name: l.Name, Relative: l.RelativeEnergy, Interval: l.Interval, How: known})
		}
	}
	return ratiosOutput(c, p, "energy per output token", r.Baseline.Name, list, serveReport{r}.print)
}

// ratiosOutput writes a picture of ratios, or the page with it.
func ratiosOutput(c *cli.Context, p *page.Page, title, over string, list []page.Ratio, about func(io.Writer)) error {
	if path := c.String("output"); path == "" || outfile.KindOf(path, outfile.Pictures...) != outfile.HTML {
		return outfile.WriteChart(c, path, page.WideRatios(title, over, list))
	}
	s := p.Section("Energy")
	if len(list) > 0 {
		s.Picture(page.Ratios("energy", over, list), "Energy relative to "+over+", with 95 % intervals.")
	}
	about(s)
	return p.Write(c, c.String("output"))
}
