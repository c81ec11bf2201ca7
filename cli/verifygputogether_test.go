package cli

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// TestLayersAsBefore: what is found of a model's layers on a card among several is what is found on it
// alone.
func TestLayersAsBefore(t *testing.T) {
	dir := t.TempDir()
	model, out := filepath.Join(dir, "m"), filepath.Join(dir, "out")
	for _, args := range [][]string{{"synth", "llama-tiny", model, "--json"}, {"convert", model, out, "--passes", "round=4", "--json"}} {
		printed(t, args...)
	}
	measured := func(device string) map[string]any {
		d := printed(t, "verify", model, out, "--gpu", "--device", device, "--total", "--workload", "decode", "--time", "10s", "--json")
		return d["energy"].(map[string]any)["measured"].(map[string]any)
	}
	alone, several := measured("simulated"), measured("simulated,simulated")
	cards := several["cards"].([]any)
	first := cards[0].(map[string]any)
	if len(cards) != 2 || first["device"] != "simulated 1" {
		t.Fatalf("%d cards, the first %v", len(cards), first["device"])
	}
	delete(first, "device")
	undated(alone)
	undated(first)
	if d := cmp.Diff(alone, first); d != "" {
		t.Error(d)
	}
	total := several["total"].(map[string]any)["relative_energy"].(float64)
	one, two := first["relative_energy"].(float64), cards[1].(map[string]any)["relative_energy"].(float64)
	if total <= min(one, two) || total >= max(one, two) {
		t.Errorf("together %v, alone %v and %v", total, one, two)
	}
}

// undated takes the dates out of a document.
func undated(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "date")
		for _, part := range v {
			undated(part)
		}
	case []any:
		for _, part := range v {
			undated(part)
		}
	}
}

// phaseOf a card: so much energy, of which so much is left.
func phaseOf(name string, share, joules, left float64) measuredPhase {
	interval := []float64{left - 0.01, left + 0.01}
	run := &measure.Result{Result: &power.Result{
		Valid: true, Baseline: power.Summary{Name: "source", Joules: joules, Watts: 600, Seconds: 1},
		Variants: []power.Comparison{{RelativeEnergy: left, Interval: interval, RelativeTime: 1, TimeInterval: interval, Summary: power.Summary{Name: "output", Joules: left * joules, Watts: 600, Seconds: 1}}},
	}}
	return measuredPhase{Phase: name, Share: share, Total: &measuredRow{Relative: left, Interval: interval, Run: run}}
}

func card(name string, phases ...measuredPhase) cardEnergy {
	e := &measuredEnergy{Phases: phases}
	e.mix()
	return cardEnergy{name, e}
}

func TestEnergyTogether(t *testing.T) {
	t.Run("two phases", func(t *testing.T) {
		e := energyTogether{Cards: []cardEnergy{
			card("card 0", phaseOf("prefill", 0.5, 1, 0.9), phaseOf("decode", 0.5, 2, 0.8)),
			card("card 1", phaseOf("prefill", 0.5, 3, 0.7), phaseOf("decode", 0.5, 2, 0.8)),
		}}
		e.add()
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
		same := measuredPhase{Phase: "decode", Share: 0.5, Total: &measuredRow{Identical: true}}
		e := energyTogether{Cards: []cardEnergy{card("a", phaseOf("prefill", 0.5, 1, 0.9), same), card("b", phaseOf("prefill", 0.5, 1, 0.9), same)}}
		e.add()
		if len(e.Total.Phases) != 1 || math.Abs(e.Total.Relative-0.95) > 1e-12 {
			t.Errorf("together %+v", e.Total)
		}
	})
	t.Run("a total that is put together", func(t *testing.T) {
		rows := phaseOf("prefill", 1, 3, 0.9)
		rows.Layers, rows.Total = []measuredRow{*rows.Total, *rows.Total}, nil
		rows.Total = totalOf(rows.Layers)
		e := energyTogether{Cards: []cardEnergy{card("a", rows), card("b", phaseOf("prefill", 1, 6, 0.8))}}
		e.add()
		if l := e.Total.Phases[0].Loads; math.Abs(l[1].RelativeEnergy-0.85) > 1e-12 || math.Abs(l[0].Joules-12) > 1e-9 || l[1].Watts != 0 {
			t.Errorf("together %+v", l)
		}
	})
	t.Run("not all", func(t *testing.T) {
		whole, part := card("a", phaseOf("prefill", 0.5, 1, 0.9), phaseOf("decode", 0.5, 1, 0.9)), card("b", phaseOf("prefill", 0.5, 1, 0.9))
		for name, cards := range map[string][]cardEnergy{"a phase is missing": {whole, part}, "a card is missing": {whole, {Name: "b"}}, "both have begun": {card("a"), card("b")}} {
			e := energyTogether{Cards: cards}
			n := len(cards)
			if cards[1].measuredEnergy == nil {
				n = 1
			}
			if e.add(); e.Total != nil || e.Spread != nil || len(e.Cards) != n {
				t.Errorf("%s: %+v", name, e)
			}
		}
	})
}

// TestChance: of several null comparisons one may miss, of one none; and what else is wrong always counts.
func TestChance(t *testing.T) {
	missed := func(name string, reasons ...string) measuredPhase {
		p := phaseOf(name, 1, 1, 0.9)
		p.Total.Run.Valid, p.Total.Run.Invalid = false, append(reasons, "the null comparison")
		p.Total.Run.Null.Interval = []float64{1.001, 1.01}
		return p
	}
	good := phaseOf("prefill", 1, 1, 0.9)
	for name, c := range map[string]struct {
		cards []cardEnergy
		want  []string
	}{
		"one of two cards": {[]cardEnergy{card("a", good), card("b", missed("prefill"))}, nil},
		"both cards":       {[]cardEnergy{card("a", missed("prefill")), card("b", missed("prefill"))}, []string{"a, prefill: the null comparison", "b, prefill: the null comparison"}},
		"one of two phases of one card, two of the other": {[]cardEnergy{card("a", good, missed("decode")), card("b", missed("prefill"), missed("decode"))},
			[]string{"a, decode: the null comparison", "b, prefill: the null comparison", "b, decode: the null comparison"}},
		"heat": {[]cardEnergy{card("a", good), card("b", missed("prefill", "heat"))}, []string{"b, prefill: heat", "b, prefill: the null comparison"}},
	} {
		e := energyTogether{Cards: c.cards}
		if e.add(); !cmp.Equal(e.Invalid, c.want) || e.holds() != (c.want == nil) {
			t.Errorf("%s: %q, holds %v", name, e.Invalid, e.holds())
		}
		var out bytes.Buffer
		if e.print(&out); strings.Count(out.String(), "INVALID: ") != len(c.want) {
			t.Errorf("%s: %s", name, out.String())
		}
	}
	alone := measuredEnergy{Phases: []measuredPhase{missed("prefill")}}
	if alone.Invalid = measure.Against(alone.runs("")); alone.holds() || !alone.complete() {
		t.Error("a card alone, whose only null comparison misses, holds")
	}
}
