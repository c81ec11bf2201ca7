package measure

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
)

// phaseOf returns a card's phase with the energy before, in joules, and the share that is left after.
func phaseOf(name string, share, joules, left float64) Phase {
	interval := []float64{left - 0.01, left + 0.01}
	run := &Result{Result: &power.Result{
		Header: power.Header{Valid: true}, Baseline: power.Summary{Name: "source", Joules: joules, Watts: 600, Seconds: 1},
		Variants: []power.Comparison{{RelativeEnergy: left, Interval: interval, RelativeTime: 1, TimeInterval: interval, Summary: power.Summary{Name: "output", Joules: left * joules, Watts: 600, Seconds: 1}}},
	}}
	return Phase{Phase: name, Share: share, Total: &Row{Relative: left, Interval: interval, Run: run}}
}

func card(name string, phases ...Phase) CardEnergy {
	e := &ModelEnergy{Phases: phases}
	e.weigh()
	return CardEnergy{name, e}
}

func TestModelCards(t *testing.T) {
	t.Run("two phases", func(t *testing.T) {
		e := ModelReport{Cards: []CardEnergy{
			card("card 0", phaseOf("prefill", 0.5, 1, 0.9), phaseOf("decode", 0.5, 2, 0.8)),
			card("card 1", phaseOf("prefill", 0.5, 3, 0.7), phaseOf("decode", 0.5, 2, 0.8)),
		}}
		e.join()
		want := (0.5*(0.9+3*0.7)/4 + 0.5*0.8) // energy counts within a phase, the share between them
		if have := e.Total.Relative; math.Abs(have-want) > 1e-12 || e.Total.Interval[1] <= want || len(e.Total.Phases) != 2 {
			t.Errorf("together %v within %v, want %v", have, e.Total.Interval, want)
		}
		if r := e.Spread.Relative; r.SmallestCard != "card 1" || math.Abs(r.Largest-0.85) > 1e-12 {
			t.Errorf("spread %+v", r)
		}
		if p := e.Spread.Phases; !*p[0].Loads[1].Differ || *p[1].Loads[1].Differ || p[0].Loads[0].Joules.LargestCard != "card 1" {
			t.Errorf("phases %+v", p)
		}
	})
	t.Run("a phase in which nothing changed", func(t *testing.T) {
		same := Phase{Phase: "decode", Share: 0.5, Total: &Row{Identical: true}}
		e := ModelReport{Cards: []CardEnergy{card("a", phaseOf("prefill", 0.5, 1, 0.9), same), card("b", phaseOf("prefill", 0.5, 1, 0.9), same)}}
		e.join()
		if len(e.Total.Phases) != 1 || math.Abs(e.Total.Relative-0.95) > 1e-12 {
			t.Errorf("together %+v", e.Total)
		}
	})
	t.Run("a total that is put together", func(t *testing.T) {
		rows := phaseOf("prefill", 1, 3, 0.9)
		rows.Layers, rows.Total = []Row{*rows.Total, *rows.Total}, nil
		rows.Total = sumRows(rows.Layers)
		e := ModelReport{Cards: []CardEnergy{card("a", rows), card("b", phaseOf("prefill", 1, 6, 0.8))}}
		e.join()
		if l := e.Total.Phases[0].Loads; math.Abs(l[1].RelativeEnergy-0.85) > 1e-12 || math.Abs(l[0].Joules-12) > 1e-9 || l[1].Watts != 0 {
			t.Errorf("together %+v", l)
		}
	})
	t.Run("not all", func(t *testing.T) {
		whole, part := card("a", phaseOf("prefill", 0.5, 1, 0.9), phaseOf("decode", 0.5, 1, 0.9)), card("b", phaseOf("prefill", 0.5, 1, 0.9))
		for name, cards := range map[string][]CardEnergy{"a phase is missing": {whole, part}, "a card is missing": {whole, {Name: "b"}}, "both have begun": {card("a"), card("b")}} {
			e := ModelReport{Cards: cards}
			n := len(cards)
			if cards[1].ModelEnergy == nil {
				n = 1
			}
			if e.join(); e.Total != nil || e.Spread != nil || len(e.Cards) != n {
				t.Errorf("%s: %+v", name, e)
			}
		}
	})
}

// TestChance: one of several null comparisons may miss, but a single one may not. Any other reason always counts.
func TestChance(t *testing.T) {
	missed := func(name string, reasons ...string) Phase {
		p := phaseOf(name, 1, 1, 0.9)
		p.Total.Run.Valid, p.Total.Run.Invalid = false, append(reasons, "the null comparison")
		p.Total.Run.Null.Interval = []float64{1.001, 1.01}
		return p
	}
	good := phaseOf("prefill", 1, 1, 0.9)
	for name, c := range map[string]struct {
		cards []CardEnergy
		want  []string
	}{
		"one of two cards": {[]CardEnergy{card("a", good), card("b", missed("prefill"))}, nil},
		"both cards":       {[]CardEnergy{card("a", missed("prefill")), card("b", missed("prefill"))}, []string{"a, prefill: the null comparison", "b, prefill: the null comparison"}},
		"one of two phases of one card, two of the other": {[]CardEnergy{card("a", good, missed("decode")), card("b", missed("prefill"), missed("decode"))},
			[]string{"a, decode: the null comparison", "b, prefill: the null comparison", "b, decode: the null comparison"}},
		"heat": {[]CardEnergy{card("a", good), card("b", missed("prefill", "heat"))}, []string{"b, prefill: heat", "b, prefill: the null comparison"}},
	} {
		e := ModelReport{Cards: c.cards}
		if e.join(); !cmp.Equal(e.Invalid, c.want) || e.Holds(false) != (c.want == nil) {
			t.Errorf("%s: %q, holds %v", name, e.Invalid, e.Holds(false))
		}
	}
	for reason, want := range map[string]bool{"the null comparison": true, "heat": false} { // against a row of one kind
		p, row := phaseOf("prefill", 1, 1, 0.9), missed("prefill")
		if row.Total.Run.Invalid = []string{reason}; !want {
			row.Total.Run.Null.Interval = []float64{0.99, 1.01}
		}
		p.Layers = []Row{*row.Total}
		if e := (&ModelReport{Cards: []CardEnergy{card("", p)}}); e.Holds(false) != want {
			t.Errorf("a row with %q: holds %v, want %v", reason, !want, want)
		}
	}
	alone := ModelEnergy{Phases: []Phase{missed("prefill")}}
	if alone.Invalid = InvalidReasons(alone.totals("")); (&ModelReport{Cards: []CardEnergy{{ModelEnergy: &alone}}}).Holds(false) || !alone.complete(false) {
		t.Error("a card alone, whose only null comparison misses, holds")
	}
}

// TestModelsWithoutCards is an error that says what is missing.
func TestModelsWithoutCards(t *testing.T) {
	r, err := Models(t.Context(), nil, &weights.Model{}, &weights.Model{}, ModelOptions{})
	if r != nil || err == nil || !strings.Contains(err.Error(), "no card to measure on") {
		t.Errorf("%v, %v", r, err)
	}
}
