package arch

import (
	"strings"
	"testing"
)

// A family whose uses do not add up, or whose symmetries find no partner in some model, is
// refused with that model, and only then.
func TestUses(t *testing.T) {
	with := func(config, more string) string { return strings.TrimSuffix(config, "}") + more + "}" }
	for _, c := range []struct{ family, config, old, new, want string }{
		{"llama", llamaConfig, `"uses": "3", "permute"`, `"uses": "4", "permute"`,
			`index layers.0.ffn: stands on 3 axes of linear and embedding tensors, but the family says 4: mend its axes or its uses`},
		{"llama", llamaConfig, `"1 + 7 * layers + head_tensors"`, `"9 * layers"`,
			`index residual: stands on 16 axes of linear and embedding tensors, but the family says 9 * layers 18: mend`},
		{"llama", llamaConfig, `"1 + 7 * layers + head_tensors"`, `"layers"`,
			`index residual: stands on 16 axes of linear and embedding tensors, but the family says num_hidden_layers 2: mend`},
		{"llama", llamaConfig, `"1 + 7 * layers + head_tensors"`, `"layers / kv_heads / 2"`,
			`config.json: layers / kv_heads 1 is not a multiple of 2 (for the uses of index "residual")`},
		{"gpt2", gpt2Config, `["positions", "residual"]`, `["positions", "hidden"]`,
			`index residual: stands on 9 axes of linear and embedding tensors, but the family says 2 + 4 * layers + head_tensors 10`},
		{"gpt2", gpt2Config, `"uses": "1", "permute"`, `"uses": "2", "permute"`, `index layers.0.head.0.qk: stands on 1 axes`},
		{"llama", with(llamaConfig, `, "tie_word_embeddings": true`), `"scale": "!tied !headless"`, `"scale": "always"`,
			`index final_norm: its scale finds no axis with +final_norm and one with -final_norm in this model`},
		{"unusual", unusualConfig, `["ffn | +ffn", "-residual"], "to": "dense"}`,
			`["ffn | +ffn", "-residual"], "to": "dense", "when": "relu"},
			{"name": "{prefix}b.{layer}.gate_up.weight", "role": "linear", "axes": ["ffn | ffn", "-residual"], "to": "dense"}`,
			`index layers.0.ffn: its sign finds fewer than two axes with +ffn or -ffn in this model`},
		{"llama", llamaConfig, `"uses": "2"`, `"uses": "2 + 0"`, ``},
	} {
		text := unusual
		if c.family != "unusual" {
			text = source(t, c.family)
		}
		changed := strings.ReplaceAll(text, c.old, c.new)
		if changed == text {
			t.Fatalf("%s: nothing replaced", c.old)
		}
		f, err := Parse([]byte(changed))
		if err == nil {
			_, err = f.Expect([]byte(c.config))
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s for %s: got\n%v\nwant\n%s", c.new, c.old, err, c.want)
		}
	}
}

// Indices that stand in more places than memory could bear are refused before they are counted.
func TestTooManyPlaces(t *testing.T) {
	f := mustParse(t, `{"family": "many", "model_types": ["many"],
		"dims": [{"name": "n", "fields": ["n"]}], "loops": [{"name": "layer", "count": "n"}],
		"indices": [{"name": "head", "length": "n", "uses": "n"}, {"name": "qk", "per": ["head"], "length": "2", "uses": "n"}],
		"tensors": [{"name": "{layer}", "role": "embedding", "axes": ["head qk"]}]}`)
	if _, err := f.Expect([]byte(`{"n": 1000}`)); err != nil {
		t.Error(err)
	}
	_, err := f.Expect([]byte(`{"n": 200000}`))
	if want := `config.json: asks for indices in more than 16777216 places (such as in "{layer}")`; err == nil || err.Error() != want {
		t.Error(err)
	}
}
