package cli

import (
	"fmt"
	"io"

	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// energyTogether is what verify --gpu found on several cards. Total and Spread are absent where some card
// measured nothing.
type energyTogether struct {
	Cards  []cardEnergy  `json:"cards"`
	Total  *energyTotal  `json:"total,omitempty"`
	Spread *energySpread `json:"spread,omitempty"`
	// Invalid is what speaks against them, but for null comparisons that chance may miss: so many cards'
	// miss some that a single card's would not.
	Invalid []string `json:"invalid,omitempty"`
}

type cardEnergy struct {
	Name string `json:"device"`
	*measuredEnergy
}

// energyTotal is of all cards together.
type energyTotal struct {
	// Relative is of the workload.
	Relative float64      `json:"relative_energy,omitempty"`
	Interval []float64    `json:"interval,omitempty"`
	Phases   []phaseTotal `json:"phases"`
}

type phaseTotal struct {
	Phase string          `json:"phase"`
	Share float64         `json:"share"`
	Loads []measure.Total `json:"loads"` // source and output, a pass through all layers
}

// energySpread is how far the cards are apart.
type energySpread struct {
	// Relative is of the workload.
	Relative *measure.Range `json:"relative_energy,omitempty"`
	Phases   []phaseSpread  `json:"phases"`
}

type phaseSpread struct {
	Phase string           `json:"phase"`
	Loads []measure.Spread `json:"loads"`
}

// add makes the totals and the spread of the cards' phases, and leaves out cards without any.
func (t *energyTogether) add() {
	var names []string
	var relative []float64
	phases, complete := 0, true
	for _, c := range t.Cards {
		complete = complete && c.measuredEnergy != nil && (len(names) == 0 || len(c.Phases) == phases)
		if c.measuredEnergy == nil {
			continue
		}
		names, relative, phases = append(names, c.Name), append(relative, c.Relative), len(c.Phases)
	}
	measured := t.Cards[:0]
	for _, c := range t.Cards {
		if c.measuredEnergy != nil {
			measured = append(measured, c)
		}
	}
	t.Cards = measured
	t.Invalid = measure.Against(t.runs())
	if !complete || phases == 0 {
		return
	}
	t.Total, t.Spread = &energyTotal{}, &energySpread{Relative: measure.RangeOf(names, relative), Phases: []phaseSpread{}}
	mixed := measuredEnergy{} // phases of all cards, to be weighed as those of one
	for i, p := range t.Cards[0].Phases {
		of := measuredPhase{Phase: p.Phase, Share: p.Share}
		var loads [][]power.Comparison
		for _, c := range t.Cards {
			if own := c.Phases[i].loads(); own != nil {
				loads = append(loads, own)
			}
		}
		switch {
		case p.Total != nil && p.Total.Identical:
			of.Total = &measuredRow{Identical: true}
		case len(loads) == len(t.Cards):
			all := measure.Totals(loads)
			of.Total = &measuredRow{Relative: all[1].RelativeEnergy, Interval: all[1].Interval}
			t.Total.Phases = append(t.Total.Phases, phaseTotal{p.Phase, p.Share, all})
			t.Spread.Phases = append(t.Spread.Phases, phaseSpread{p.Phase, measure.Spreads(names, loads)})
		}
		mixed.Phases = append(mixed.Phases, of)
	}
	if len(t.Total.Phases) == 0 {
		t.Total, t.Spread = nil, nil
		return
	}
	mixed.mix()
	t.Total.Relative, t.Total.Interval = mixed.Relative, mixed.Interval
}

// loads of a phase are those of its total: source and output; nil where that is not known.
func (p *measuredPhase) loads() []power.Comparison {
	t := p.Total
	switch {
	case t == nil || t.Identical:
		return nil
	case t.Run != nil:
		all := t.Run.Loads()
		return []power.Comparison{all[0], all[2]}
	}
	source := power.Comparison{Summary: power.Summary{Name: "source"}} // put together from rows
	for _, r := range p.Layers {
		source.Joules += r.Run.Baseline.Joules
	}
	output := power.Comparison{RelativeEnergy: t.Relative, Interval: t.Interval, Summary: power.Summary{Name: "output", Joules: t.Relative * source.Joules}}
	return []power.Comparison{source, output}
}

func (t *energyTogether) print(w io.Writer) {
	simulated := false
	for _, c := range t.Cards {
		fmt.Fprintf(w, "%s:\n", c.Name)
		c.print(w)
		fmt.Fprintln(w)
		simulated = simulated || c.Simulated
	}
	if t.Total != nil {
		for i, p := range t.Total.Phases {
			fmt.Fprintf(w, "%s, ", p.Phase)
			printTotals(w, len(t.Cards), "layers", p.Loads)
			printSpreads(w, "layers", t.Spread.Phases[i].Loads)
			fmt.Fprintln(w)
		}
		if len(t.Total.Phases) > 1 && t.Total.Relative > 0 {
			fmt.Fprintf(w, "energy of the workload on all cards: %s %s, %s\n", percentOf(t.Total.Relative, t.Total.Interval), how(simulated), span(t.Total.Interval))
		}
	}
	if simulated {
		term.Remark(w, "note", simulatedNote)
	}
	term.Remarks(w, "INVALID", t.Invalid)
}

func (t *energyTogether) bench(w io.Writer) {
	for _, c := range t.Cards {
		c.bench(w)
	}
}
