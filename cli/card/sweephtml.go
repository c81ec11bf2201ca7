package card

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// page fills the report's page.
func (q *sweepRequest) page(c *cli.Context, r *sweep.Result) *page.Page {
	title := r.Before
	if r.After != "" {
		title += " → " + r.After
	}
	p, known := page.New(c, "Energy at power limits and clocks", title), knownHow(r.Simulated)
	from := cardOrigin("", r.GPU, r.CardID) + ", " + r.Date
	if r.Predicted {
		known, from = report.Predicted, "calibration "+r.Calibration
	}
	p.Origin("energy, time, power and clock", known, from)
	for _, b := range r.Best {
		if b.Metric != "energy" {
			continue
		}
		for _, f := range []struct {
			label  string
			choice *sweep.Choice
		}{{"energy at the best setting", &b.Setting}, {"energy of the conversion", b.Transform}, {"energy of both together", b.Both}} {
			if f.choice != nil {
				p.Figure(f.label, term.Change(f.choice.Value), fmt.Sprintf("at %v, relative to the original at %g W", f.choice.Setting, r.Reference), known)
			}
		}
	}
	s := p.Section("Settings")
	for _, one := range split(sweepChart(r)) {
		for i := range one.Panels[0].Lines { // a single picture names lines in its first panel only
			if l := &one.Panels[0].Lines[i]; l.Name == "" {
				l.Name = []string{"original", "converted"}[min(i, 1)]
			}
		}
		s.Picture(one, "")
	}
	q.print(s, r)
	return p
}
