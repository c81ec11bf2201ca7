package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
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

// TestInvalidTogether: what speaks against several cards' totals is printed once, and not again for the card.
func TestInvalidTogether(t *testing.T) {
	r := measure.ModelReport{Cards: []measure.CardEnergy{
		{Name: "a", ModelEnergy: &measure.ModelEnergy{Invalid: []string{"prefill: heat"}}}, {Name: "b", ModelEnergy: &measure.ModelEnergy{}},
	}, Invalid: []string{"a, prefill: heat"}}
	var out bytes.Buffer
	if printModels(&out, &r, ""); strings.Count(out.String(), "INVALID: ") != 1 || !strings.Contains(out.String(), "INVALID: a, prefill: heat") {
		t.Error(out.String())
	}
}
