package transform_test

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestLayerOfZerosUnderEveryPass: layers initialised with zeros exist in real models, so every pass must handle one.
func TestLayerOfZerosUnderEveryPass(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	for _, family := range []string{"llama-tiny", "gpt2-tiny"} {
		dir := folder(t, config(t, family, ""), synth.Options{Seed: 1})
		edit(t, dir, func(info weights.Info, data []byte) {
			if strings.Contains(info.Name, ".1.") && strings.Contains(info.Name, "proj.weight") {
				clear(data)
			}
		})
		m := open(t, dir)
		for _, passes := range []string{"scale", "reorder", "signs", "shift", "grid", "grid=4", "round", "round=4", "sparsify",
			"sparsify=0.1", "sparsify=0.1/runs", "sparsify=0.1/16x1", "sparsify=2:4"} {
			applied(t, m, makePlan(t, m, passes, 20))
		}
	}
}
