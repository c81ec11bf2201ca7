package measure

import "github.com/lowtoggle/lowtoggle/gemm/power"

// ModelTotal holds the totals over all cards.
type ModelTotal struct {
	// Relative is the workload's energy after conversion relative to before.
	Relative float64      `json:"relative_energy,omitempty"`
	Interval []float64    `json:"interval,omitempty"`
	Phases   []PhaseTotal `json:"phases"`
}

// PhaseTotal is a phase of [ModelTotal].
type PhaseTotal struct {
	Phase string  `json:"phase"`
	Share float64 `json:"share"`
	Loads []Total `json:"loads"` // source and output: one pass through all layers
}

// ModelSpread holds the differences between cards.
type ModelSpread struct {
	// Relative is the range of the workload's relative energy.
	Relative *Range        `json:"relative_energy,omitempty"`
	Phases   []PhaseSpread `json:"phases"`
}

// PhaseSpread is a phase of [ModelSpread].
type PhaseSpread struct {
	Phase string   `json:"phase"`
	Loads []Spread `json:"loads"`
}

// join computes the totals and the spread over the cards. It removes cards without any measurement.
func (r *ModelReport) join() {
	var names []string
	var relative []float64
	phases, complete := 0, true
	measured := r.Cards[:0:0]
	for _, c := range r.Cards {
		begun := c.ModelEnergy != nil
		complete = complete && begun && (len(names) == 0 || len(c.Phases) == phases)
		if !begun {
			continue
		}
		names, relative, phases = append(names, c.Name), append(relative, c.Relative), len(c.Phases)
		measured = append(measured, c)
	}
	r.Cards = measured
	r.Invalid = InvalidReasons(r.totals())
	if !complete || phases == 0 {
		return
	}
	r.Total, r.Spread = &ModelTotal{}, &ModelSpread{Relative: rangeOf(names, relative), Phases: []PhaseSpread{}}
	together := ModelEnergy{} // sums over all cards, by phase
	for i, p := range r.Cards[0].Phases {
		of := Phase{Phase: p.Phase, Share: p.Share}
		var loads [][]power.Comparison
		for _, c := range r.Cards {
			if own := c.Phases[i].loads(); own != nil {
				loads = append(loads, own)
			}
		}
		switch {
		case p.Total != nil && p.Total.Identical:
			of.Total = &Row{Identical: true}
		case len(loads) == len(r.Cards):
			all := totalsOf(loads)
			of.Total = &Row{Relative: all[1].RelativeEnergy, Interval: all[1].Interval}
			r.Total.Phases = append(r.Total.Phases, PhaseTotal{p.Phase, p.Share, all})
			r.Spread.Phases = append(r.Spread.Phases, PhaseSpread{p.Phase, spreadsOf(names, loads)})
		}
		together.Phases = append(together.Phases, of)
	}
	if len(r.Total.Phases) == 0 {
		r.Total, r.Spread = nil, nil
		return
	}
	together.weigh()
	r.Total.Relative, r.Total.Interval = together.Relative, together.Interval
}

// totals returns the measured totals of all cards. Each name consists of the card and the phase.
func (r *ModelReport) totals() (names []string, runs []*Result) {
	for _, c := range r.Cards {
		own, of := c.totals(c.Name + ", ")
		names, runs = append(names, own...), append(runs, of...)
	}
	return names, runs
}

// loads returns the two loads of a phase's total, source and output; nil if they are unknown.
func (p *Phase) loads() []power.Comparison {
	t := p.Total
	switch {
	case t == nil || t.Identical:
		return nil
	case t.Run != nil:
		all := t.Run.Loads()
		return []power.Comparison{all[0], all[2]}
	}
	source := power.Comparison{Summary: power.Summary{Name: "source"}} // the sum of rows
	for _, r := range p.Layers {
		source.Joules += r.Run.Baseline.Joules
	}
	output := power.Comparison{RelativeEnergy: t.Relative, Interval: t.Interval, Summary: power.Summary{Name: "output", Joules: t.Relative * source.Joules}}
	return []power.Comparison{source, output}
}
