package measure

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
)

// ModelReport is the result of [Models]. The JSON for a single card is the card's [ModelEnergy].
type ModelReport struct {
	// Cards are the cards with measurements.
	Cards []CardEnergy `json:"cards"`
	// Total and Spread are for several cards. They are absent if a card has no measurements.
	Total  *ModelTotal  `json:"total,omitempty"`
	Spread *ModelSpread `json:"spread,omitempty"`
	// Invalid lists the reasons against the totals of several cards. Missed null comparisons are left out if chance explains
	// their number.
	Invalid []string `json:"invalid,omitempty"`
}

// CardEnergy is the result of one of several cards. The name of a single card is empty.
type CardEnergy struct {
	Name string `json:"device,omitempty"`
	*ModelEnergy
}

// ModelEnergy is the result of a card: ratios of the output to the source.
type ModelEnergy struct {
	GPU       string    `json:"gpu"`
	CardID    string    `json:"card_id,omitempty"`   // as in [power.Info]
	Simulated bool      `json:"simulated,omitempty"` // figures mean nothing
	Role      cost.Role `json:"role"`
	X         string    `json:"x"`
	// Relative is the workload's ratio: the phases' ratios weighted by their shares. It is absent until every phase has been
	// measured.
	Relative float64   `json:"relative_energy,omitempty"`
	Interval []float64 `json:"interval,omitempty"` // 95 %
	Phases   []Phase   `json:"phases"`
	// Invalid lists the reasons against the totals, without null comparisons that miss by chance.
	Invalid []string `json:"invalid,omitempty"`
	// Kernels are the kernels of quantised layers.
	Kernels []string `json:"kernels,omitempty"`
	// KernelsAfter are the output's kernels if they differ from the source's, which are then in Kernels.
	KernelsAfter []string `json:"kernels_after,omitempty"`
	// Skipped are layers whose stored form no GPU can multiply.
	Skipped []string `json:"not_measured,omitempty"`
}

// Phase is one phase of the workload.
type Phase struct {
	Phase  string  `json:"phase"` // prefill or decode
	Share  float64 `json:"share"`
	Tokens int     `json:"m"`
	// TooLarge is true if the models do not fit on the card: Total is then the sum of the rows.
	TooLarge bool  `json:"too_large,omitempty"`
	Total    *Row  `json:"total,omitempty"`
	Layers   []Row `json:"layers,omitempty"` // a row for each kind of layer
	// Components is the total's power by component, predicted; absent if the card has no model.
	Components *Signature `json:"components,omitempty"`
}

// Row is a group of layers that were measured together.
type Row struct {
	Kind   string `json:"kind,omitempty"`
	Layers int    `json:"count"`
	// Identical layers were not measured: both models have the same bytes.
	Identical    bool      `json:"identical,omitempty"`
	Relative     float64   `json:"relative_energy,omitempty"`
	Interval     []float64 `json:"interval,omitempty"`
	RelativeTime float64   `json:"relative_time,omitempty"`
	Run          *Result   `json:"run,omitempty"`
}

func (r *Row) of(run *Result) {
	v := run.Variants[0]
	r.Run, r.Relative, r.Interval, r.RelativeTime = run, v.RelativeEnergy, v.Interval, v.RelativeTime
}

// AtDuty returns the phase at the further duty of that index ([Options].Duties); nil if it was not measured.
func (p Phase) AtDuty(i int) *Phase {
	measured := false
	at := func(r Row) Row {
		if r.Run == nil {
			return r
		}
		found := Row{Kind: r.Kind, Layers: r.Layers}
		if i < len(r.Run.AtDuty) {
			found.of(r.Run.AtDuty[i])
			measured = true
		}
		return found
	}
	other := Phase{Phase: p.Phase, Share: p.Share, Tokens: p.Tokens, TooLarge: p.TooLarge}
	for _, r := range p.Layers {
		other.Layers = append(other.Layers, at(r))
	}
	switch {
	case p.TooLarge:
		other.Total = sumRows(other.Layers)
	case p.Total != nil:
		total := at(*p.Total)
		other.Total = &total
	}
	if !measured {
		return nil
	}
	return &other
}

// Several reports whether the comparison was requested on several cards.
func (r *ModelReport) Several() bool { return len(r.Cards) != 1 || r.Cards[0].Name != "" }

// MarshalJSON returns the result of a single card, or the document of several cards.
func (r *ModelReport) MarshalJSON() ([]byte, error) {
	if !r.Several() {
		return json.Marshal(r.Cards[0])
	}
	type document ModelReport // without this method
	return json.Marshal((*document)(r))
}

// Measured reports whether anything was measured, or found to be identical.
func (r *ModelReport) Measured() bool {
	return slices.ContainsFunc(r.Cards, func(c CardEnergy) bool { return len(c.Phases) > 0 })
}

// Holds reports whether all totals exist and are valid. With precise, they must also have reached the meter's
// precision. A row of a single kind may miss its null comparison, as one in twenty does by chance. It may not be invalid
// for another reason.
func (r *ModelReport) Holds(precise bool) bool {
	if !r.Several() {
		return r.Cards[0].complete(precise) && len(r.Cards[0].Invalid) == 0
	}
	return !slices.ContainsFunc(r.Cards, func(c CardEnergy) bool { return !c.complete(precise) }) && len(r.Invalid) == 0
}

// complete reports whether all totals exist and, with precise, have reached the precision. No row is invalid for
// another reason than its null comparison.
func (e *ModelEnergy) complete(precise bool) bool {
	short := func(r *Result) bool { return precise && !r.precise() }
	invalid := func(r Row) bool { return r.Run != nil && !r.Run.Valid && !r.Run.OnlyNull() }
	return !slices.ContainsFunc(e.Phases, func(p Phase) bool {
		switch t := p.Total; {
		case t == nil || slices.ContainsFunc(p.Layers, invalid):
			return true
		case t.Identical:
			return false
		case t.Run == nil: // the sum of rows, each of which must have reached the precision
			return slices.ContainsFunc(p.Layers, func(r Row) bool { return short(r.Run) })
		default:
			return short(t.Run)
		}
	})
}

// Unchanged reports whether all layers are identical, so nothing was measured.
func (e *ModelEnergy) Unchanged() bool {
	return !slices.ContainsFunc(e.Phases, func(p Phase) bool { return p.Total == nil || !p.Total.Identical })
}

// Signatures returns the signatures of all phases that have one.
func (e *ModelEnergy) Signatures() (list []*Signature) {
	for _, p := range e.Phases {
		if p.Components != nil {
			list = append(list, p.Components)
		}
	}
	return list
}

// totals returns the measured totals. Names are a prefix and the phase.
func (e *ModelEnergy) totals(prefix string) (names []string, runs []*Result) {
	for _, p := range e.Phases {
		if t := p.Total; t != nil && t.Run != nil {
			names, runs = append(names, prefix+p.Phase), append(runs, t.Run)
			for _, other := range t.Run.AtDuty {
				names, runs = append(names, prefix+p.Phase+other.atDuty()), append(runs, other)
			}
		}
	}
	return names, runs
}

// weigh computes the workload's ratio from the phases, weighted by their shares of the source's energy. The phases'
// errors are independent.
func (e *ModelEnergy) weigh() {
	if e.Unchanged() {
		return
	}
	var ratio, square float64
	for _, p := range e.Phases {
		switch t := p.Total; {
		case t == nil:
			return
		case t.Identical:
			ratio += p.Share
		case t.Interval == nil:
			return
		default:
			ratio += p.Share * t.Relative
			half := p.Share * (t.Interval[1] - t.Interval[0]) / 2
			square += half * half
		}
	}
	half := math.Sqrt(square)
	e.Relative, e.Interval = ratio, []float64{ratio - half, ratio + half}
}

// sumRows returns the total of rows, weighted by energy; nil if one is unknown.
func sumRows(rows []Row) *Row {
	var total Row
	var joules, after, square float64
	for _, r := range rows {
		if r.Run == nil || r.Interval == nil {
			return nil
		}
		e := r.Run.Baseline.Joules
		half := e * (r.Interval[1] - r.Interval[0]) / 2
		total.Layers += r.Layers
		joules, after, square = joules+e, after+e*r.Relative, square+half*half
	}
	half := math.Sqrt(square) / joules
	total.Relative = after / joules
	total.Interval = []float64{total.Relative - half, total.Relative + half}
	return &total
}
