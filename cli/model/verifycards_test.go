package model

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// TestLayersAsBefore: a card among several gives the same results for a model's layers as the card alone.
func TestLayersAsBefore(t *testing.T) {
	dir := t.TempDir()
	model, out := filepath.Join(dir, "m"), filepath.Join(dir, "out")
	document(t, new(any), "synth", "--json", "llama-tiny", model)
	document(t, new(any), "convert", "--passes", "round=4", "--json", model, out)
	measured := func(device string) map[string]any {
		stdout, err := run(t.Context(), "verify", "--gpu", "--device", device, "--total", "--workload", "decode", "--time", "10s", "--json", model, out)
		if err != nil && !errors.Is(err, exit.ErrShort) {
			t.Fatal(err)
		}
		var d map[string]any
		if err := json.Unmarshal(stdout, &d); err != nil {
			t.Fatal(err)
		}
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

// undated removes the dates from a document.
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
