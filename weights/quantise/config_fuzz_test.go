package quantise

import (
	"encoding/json"
	"testing"
)

// FuzzConfig: a config.json is refused, or gets a quantization_config as its last field and keeps the others.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"model_type": "llama", "hidden_size": 64, "rope_scaling": null}`), byte(0))
	f.Add([]byte(`{"a": 1, "a": 2, "quantization_config": null}`), byte(3))
	f.Add([]byte(`{} {}`), byte(7))
	names := Names()
	f.Fuzz(func(t *testing.T, js []byte, which byte) {
		format, err := Parse(names[int(which)%len(names)])
		if err != nil {
			t.Fatal(err)
		}
		out, err := format.Config(js, []string{"lm_head"})
		if err != nil {
			return
		}
		var before, after map[string]any
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if err := json.Unmarshal(js, &before); err != nil {
			t.Fatalf("%q was accepted: %v", js, err)
		}
		if after[field] == nil {
			t.Errorf("%q has no %s", out, field)
		}
		for name := range before {
			if _, kept := after[name]; !kept {
				t.Errorf("%q lost %q", out, name)
			}
		}
	})
}
