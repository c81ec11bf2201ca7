package card

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/page"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/internal/report"
)

// AddModels adds the measured energy of two models' linear layers to a page: main figures and origins. It returns the
// ratios for a chart.
func AddModels(p *page.Page, r *measure.ModelReport) (list []page.Ratio) {
	for _, e := range r.Cards {
		known := knownHow(e.Simulated)
		p.Origin("energy of linear layers", known, cardOrigin(e.Name, e.GPU, e.CardID))
		on := prefixed(e.Name)
		if e.Relative > 0 {
			p.Figure("energy of linear layers"+on, term.MeasuredChange(e.Relative, e.Interval), page.Between(e.Interval), known)
		}
		for _, phase := range e.Phases {
			of := phase.Phase + ", "
			if len(e.Phases) == 1 {
				of = ""
			}
			for _, row := range phase.Layers {
				if row.Relative > 0 {
					list = append(list, page.Ratio{Name: of + row.Kind + on, Relative: row.Relative, Interval: row.Interval, How: known})
				}
			}
			if t := phase.Total; t != nil && t.Relative > 0 {
				list = append(list, page.Ratio{Name: of + "total" + on, Relative: t.Relative, Interval: t.Interval, How: known})
			}
		}
	}
	return list
}

// AddWhole adds the measured energy of whole models: joules per token as main figures, and their origin. It returns
// the ratios for a chart.
func AddWhole(p *page.Page, r *measure.WholeReport) (list []page.Ratio) {
	known := knownHow(r.Simulated)
	p.Origin("joules per token and energy of whole models", known, cardOrigin("", r.GPU, r.CardID))
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Relative <= 0 {
			continue
		}
		if s.After.Joules > 0 {
			p.Figure("joules per token, "+s.Name(), joulesBeside(s.After.Joules, s.Before.Joules), fmt.Sprintf("before: %s; %s", siJoules(s.Before.Joules), term.MeasuredChange(s.Relative, s.Interval)), known)
		}
		list = append(list, page.Ratio{Name: s.Name(), Relative: s.Relative, Interval: s.Interval, How: known})
	}
	return list
}

// knownHow returns the origin of a card's figures: measured or simulated.
func knownHow(simulated bool) report.How {
	if simulated {
		return report.Simulated
	}
	return report.Measured
}

// cardOrigin names a card by its short id. Among several cards, the card's name comes first.
func cardOrigin(name, gpu, id string) string {
	return strings.TrimPrefix(cmp.Or(name, "")+": ", ": ") + cardLabel(gpu, id)
}

// prefixed returns a card's name as a prefix; empty for a single card.
func prefixed(card string) string {
	if card == "" {
		return ""
	}
	return ", " + card
}
