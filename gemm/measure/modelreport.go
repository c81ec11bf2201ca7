package measure

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
)

// ModelReport is the result of [Models]. For a single card, its JSON is that card's [ModelEnergy].
type ModelReport struct {
	// Cards are the cards with measurements.
	Cards []CardEnergy `json:"cards"`
	// Total and Spread are for several cards. They are absent if a card has no measurements.
	Total  *ModelTotal  `json:"total,omitempty"`
	Spread *ModelSpread `json:"spread,omitempty"`
	// Invalid lists the reasons why the totals of several cards are not valid. Null comparisons whose misses chance
	// explains are left out.
	Invalid []string `json:"invalid,omitempty"`
}

// CardEnergy is the result of one of several cards. The name of a single card is empty.
type CardEnergy struct {
	Name string `json:"device,omitempty"`
	*ModelEnergy
}

// ModelEnergy is the result of one card. Ratios are output relative to source.
type ModelEnergy struct {
	GPU       string    `json:"gpu"`
	CardID    string    `json:"card_id,omitempty"`   // as in [power.Info]
	Simulated bool      `json:"simulated,omitempty"` // whether the card is simulated; simulated figures say nothing about a real card
	Role      cost.Role `json:"role"`
	X         string    `json:"x"`
	// Relative is the workload's energy ratio: the phases' ratios weighted by their shares of the workload. It is
	// absent until every phase has been measured.
	Relative float64   `json:"relative_energy,omitempty"`
	Interval []float64 `json:"interval,omitempty"` // 95 %
	Phases   []Phase   `json:"phases"`
	// Invalid lists the reasons why the totals are not valid. Null comparisons whose misses chance explains are left
	// out.
	Invalid []string `json:"invalid,omitempty"`
	// Kernels are the kernels of quantised layers.
	Kernels []string `json:"kernels,omitempty"`
	// KernelsAfter are the output's kernels if they differ from the source's kernels.
	KernelsAfter []string `json:"kernels_after,omitempty"`
	// Skipped are the layers whose stored form no GPU can multiply.
	Skipped []string `json:"not_measured,omitempty"`
}

// Phase is one phase of the workload.
type Phase struct {
	Phase  string  `json:"phase"` // prefill or decode
	Share  float64 `json:"share"`
	Tokens int     `json:"m"`
	// TooLarge is true if the models do not fit on the card. Total is then the sum of the rows.
	TooLarge bool  `json:"too_large,omitempty"`
	Total    *Row  `json:"total,omitempty"`
	Layers   []Row `json:"layers,omitempty"` // a row for each kind of layer
	// Components is the predicted power of the total by component. It is absent if there is no component model of the
	// card.
	Components *Signature `json:"components,omitempty"`
}

// Row is a group of layers that were measured together.
type Row struct {
	Kind   string `json:"kind,omitempty"`
	Layers int    `json:"count"`
	// Identical is true for layers with the same bytes in both models. They are not measured.
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

// AtDuty returns the phase at the additional duty with index i ([Options].Duties); nil if it was not measured.
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

// Several reports whether the comparison was requested on more than one card.
func (r *ModelReport) Several() bool { return len(r.Cards) != 1 || r.Cards[0].Name != "" }

// MarshalJSON returns the result of a single card, or the document of several cards.
func (r *ModelReport) MarshalJSON() ([]byte, error) {
	if !r.Several() {
		return json.Marshal(r.Cards[0])
	}
	type document ModelReport // without this method
	return json.Marshal((*document)(r))
}

// Measured reports whether anything was measured or found to be identical.
func (r *ModelReport) Measured() bool {
	return slices.ContainsFunc(r.Cards, func(c CardEnergy) bool { return len(c.Phases) > 0 })
}

// Holds reports whether all totals exist and are valid. If precise is true, they must also have reached the meter's
// precision. A row of one kind of layer may miss its null comparison, as happens by chance in one of twenty. It must
// not be invalid for any other reason.
func (r *ModelReport) Holds(precise bool) bool {
	if !r.Several() {
		return r.Cards[0].complete(precise) && len(r.Cards[0].Invalid) == 0
	}
	return !slices.ContainsFunc(r.Cards, func(c CardEnergy) bool { return !c.complete(precise) }) && len(r.Invalid) == 0
}

// complete reports whether all totals exist and no row is invalid for a reason other than its null comparison. If
// precise is true, the totals must also have reached the meter's precision.
func (e *ModelEnergy) complete(precise bool) bool {
	short := func(r *Result) bool { return precise && !r.precise() }
	invalid := func(r Row) bool { return r.Run != nil && !r.Run.Valid && !r.Run.OnlyNull() }
	return !slices.ContainsFunc(e.Phases, func(p Phase) bool {
		switch t := p.Total; {
		case t == nil || slices.ContainsFunc(p.Layers, invalid):
			return true
		case t.Identical:
			return false
		case t.Run == nil: // the total is the sum of the rows, and each row must have reached the precision
			return slices.ContainsFunc(p.Layers, func(r Row) bool { return short(r.Run) })
		default:
			return short(t.Run)
		}
	})
}

// Unchanged reports whether all layers are identical and nothing was measured.
func (e *ModelEnergy) Unchanged() bool {
	return !slices.ContainsFunc(e.Phases, func(p Phase) bool { return p.Total == nil || !p.Total.Identical })
}

// Signatures returns the signatures of all phases with a signature.
func (e *ModelEnergy) Signatures() (list []*Signature) {
	for _, p := range e.Phases {
		if p.Components != nil {
			list = append(list, p.Components)
		}
	}
	return list
}

// totals returns the measured totals. Each name consists of prefix and the phase.
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

// weigh computes the workload's ratio from the phases' ratios, weighted by the phases' shares of the source's energy.
// The errors of the phases are independent.
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

// sumRows returns the total of rows, weighted by energy; nil if the energy of any row is unknown.
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
