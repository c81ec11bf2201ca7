package measure

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// CardResults is a comparison on one or several cards. For a single card, its JSON is that card's [Result].
type CardResults struct {
	// Cards are the cards with measurements.
	Cards []CardResult `json:"cards"`
	// Total and Spread are for several cards. They are absent if a card has no measurements.
	Total  *LoadTotals  `json:"total,omitempty"`
	Spread *LoadSpreads `json:"spread,omitempty"`
	// Invalid lists the reasons why the results of several cards are not valid. Null comparisons whose misses chance
	// explains are left out.
	Invalid []string `json:"invalid,omitempty"`

	asked int // number of requested cards
}

// CardResult is the result of one card. The name of a single card is empty.
type CardResult struct {
	Name string `json:"device,omitempty"`
	*Result
}

// LoadTotals are the totals over all cards.
type LoadTotals struct {
	Loads []Total `json:"loads"`
}

// LoadSpreads are the differences between the cards.
type LoadSpreads struct {
	Loads []Spread `json:"loads"`
}

// CompareOn is [Compare] on all cards at the same time. It calls progress with each card's name and events, from
// several goroutines. The name of a single card is empty. progress may be nil. o.Progress is not used. The results are
// nil if no card measured anything. After an error they hold the completed measurements.
func CompareOn(ctx context.Context, cards []Named, baseline Candidate, variants []Candidate, o Options, progress func(card string, e Event)) (*CardResults, error) {
	if ctx == nil {
		return nil, parallel.ErrNoContext
	}
	results := make([]*Result, len(cards))
	one := func(ctx context.Context, i int, name string, ready func()) (err error) {
		own := o
		own.Ready, own.Progress = ready, nil
		if progress != nil {
			own.Progress = func(e Event) { progress(name, e) }
		}
		results[i], err = Compare(ctx, cards[i].Machine, baseline, variants, own)
		return err
	}
	var err error
	if len(cards) == 1 {
		err = one(ctx, 0, "", nil)
	} else {
		err = Together(ctx, cards, func(ctx context.Context, i int, ready func()) error { return one(ctx, i, cards[i].Name, ready) })
	}
	return joinResults(cards, results), err
}

// joinResults combines the cards' results. Some results may be nil.
func joinResults(cards []Named, results []*Result) *CardResults {
	r := &CardResults{asked: len(cards)}
	var names []string
	var measured []*Result
	var loads [][]power.Comparison
	for i, one := range results {
		if one == nil {
			continue
		}
		name := cards[i].Name
		if !r.Several() {
			name = ""
		}
		r.Cards = append(r.Cards, CardResult{name, one})
		names, measured, loads = append(names, name), append(measured, one), append(loads, one.Loads())
	}
	switch {
	case r.Cards == nil:
		return nil
	case !r.Several():
		return r
	}
	r.Invalid = InvalidReasons(names, measured)
	if len(loads) == len(cards) {
		r.Total = &LoadTotals{totalsOf(loads)}
		r.Spread = &LoadSpreads{spreadsOf(names, loads)}
	}
	return r
}

// Several reports whether the comparison was requested on more than one card.
func (r *CardResults) Several() bool { return r.asked > 1 }

// MarshalJSON returns the result of a single card, or the document of several cards.
func (r *CardResults) MarshalJSON() ([]byte, error) {
	if !r.Several() {
		return json.Marshal(r.Cards[0].Result)
	}
	type document CardResults // without this method
	return json.Marshal((*document)(r))
}

// Holds reports whether every card has a valid result. If precise is true, every result must also have reached the
// meter's precision.
func (r *CardResults) Holds(precise bool) bool {
	if len(r.Cards) < r.asked {
		return false
	}
	for _, c := range r.Cards {
		if precise && !c.precise() {
			return false
		}
	}
	if r.Several() {
		return len(r.Invalid) == 0
	}
	one := r.Cards[0].Result
	return one.Valid && !slices.ContainsFunc(one.AtDuty, func(o *Result) bool { return !o.Valid })
}
