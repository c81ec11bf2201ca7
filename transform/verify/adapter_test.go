package verify_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
)

const (
	loraA = "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight"
	loraB = "base_model.model.model.layers.0.mlp.down_proj.lora_B.weight"
)

// sourceWithAdapter is a small Llama with a LoRA adapter on one layer.
func sourceWithAdapter(t *testing.T) string {
	t.Helper()
	dir := source(t, "llama-tiny", weights.BF16)
	file, placed, err := weights.EncodeHeader([]weights.Info{
		{Name: loraA, DType: weights.F32, Shape: []int{4, 100}}, {Name: loraB, DType: weights.F32, Shape: []int{48, 4}}}, nil)
	ok(t, err)
	for _, info := range placed {
		for i := range info.Len() {
			file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(math.Sin(float64(i*i)))))
		}
	}
	ok(t, os.WriteFile(filepath.Join(dir, weights.AdapterName), file, 0o666))
	ok(t, os.WriteFile(filepath.Join(dir, weights.AdapterConfigName), []byte(`{"peft_type": "LORA"}`), 0o666))
	return dir
}

func TestAdaptersAreLookedAt(t *testing.T) {
	src := sourceWithAdapter(t)
	out := convert(t, src, "scale,reorder,signs", 0)
	r := report(t, src, out)
	wantOK(t, r)
	for name, kind := range map[string]string{loraA: "mlp.down_proj.lora_A", loraB: "mlp.down_proj.lora_B"} {
		if x := tensorOf(t, r, name); x.Class != verify.Exact || x.Linear || x.Kind != kind {
			t.Errorf("%+v", x)
		}
	}
	r = report(t, src, convert(t, src, "round=4", 0))
	wantOK(t, r)
	if x := tensorOf(t, r, loraA); x.Class != verify.Identical {
		t.Errorf("%+v", x)
	}
}

func TestAdaptersThatWereLeftBehind(t *testing.T) {
	src := sourceWithAdapter(t)
	out := convert(t, src, "reorder", 0)
	file, err := os.ReadFile(filepath.Join(src, weights.AdapterName))
	ok(t, err)
	replace(t, filepath.Join(out, weights.AdapterName), file)
	wantProblem(t, report(t, src, out), weights.AdapterName+": its SHA-256")
	vouch(t, out)
	wantProblem(t, report(t, src, out), loraA)

	out = convert(t, src, "reorder", 0)
	ok(t, os.Remove(filepath.Join(out, weights.AdapterName)))
	wantProblem(t, report(t, src, out), `tensor "`+loraA+`" is missing`)
}

func TestStepsThatAnAdapterForbids(t *testing.T) {
	src := sourceWithAdapter(t)
	out := convert(t, src, "round=4", 0)
	for want, step := range map[string]map[string]any{
		"the source has no such tensor": {"pass": "round", "tensor": loraA, "round": map[string]any{"zeroed": 4}},
		"the adapter's " + loraA:        {"pass": "shift", "tensor": "model.layers.0.mlp.down_proj.weight", "shift": map[string]any{"add": 1, "epilogue": true}},
	} {
		var kept []any
		editManifest(t, out, func(m map[string]any) {
			plan := m["plan"].(map[string]any)
			kept = plan["steps"].([]any)
			plan["steps"] = []any{step}
			m["drop_in"], plan["drop_in"] = step["pass"] != "shift", step["pass"] != "shift"
		})
		wantProblem(t, report(t, src, out), want)
		editManifest(t, out, func(m map[string]any) { m["plan"].(map[string]any)["steps"] = kept })
	}
}
