package arch

import (
	"strings"
	"testing"
)

// A family whose uses or symmetries do not fit a model is an error for this model, and for no other model.
func TestUses(t *testing.T) {
	with := func(config, more string) string { return strings.TrimSuffix(config, "}") + more + "}" }
	for _, c := range []struct{ family, config, old, new, want string }{
		{"llama", llamaConfig, `"uses": "3", "permute"`, `"uses": "4", "permute"`,
			`index layers.0.ffn: is on 3 axes of linear and embedding tensors, but "uses" is 4: fix the axes, or "uses"`},
		{"llama", llamaConfig, `"1 + 7 * layers + head_tensors"`, `"9 * layers"`,
			`index residual: is on 16 axes of linear and embedding tensors, but "uses" is 9 * layers = 18: fix`},
		{"llama", llamaConfig, `"1 + 7 * layers + head_tensors"`, `"layers"`,
			`index residual: is on 16 axes of linear and embedding tensors, but "uses" is num_hidden_layers 2: fix`},
		{"llama", llamaConfig, `"1 + 7 * layers + head_tensors"`, `"layers / kv_heads / 2"`,
			`config.json: layers / kv_heads = 1 is not a multiple of 2 (in "uses" of index "residual")`},
		{"gpt2", gpt2Config, `["positions", "residual"]`, `["positions", "hidden"]`,
			`index residual: is on 9 axes of linear and embedding tensors, but "uses" is 2 + 4 * layers + head_tensors = 10`},
		{"gpt2", gpt2Config, `"uses": "1", "permute"`, `"uses": "2", "permute"`, `index layers.0.head.0.qk: is on 1 axes`},
		{"llama", with(llamaConfig, `, "tie_word_embeddings": true`), `"scale": "!tied !headless"`, `"scale": "always"`,
			`index final_norm: scales cannot cancel, because this model has no axis with +final_norm or none with -final_norm`},
		{"unusual", unusualConfig, `["ffn | +ffn", "-residual"], "to": "dense"}`,
			`["ffn | +ffn", "-residual"], "to": "dense", "when": "relu"},
			{"name": "{prefix}b.{layer}.gate_up.weight", "role": "linear", "axes": ["ffn | ffn", "-residual"], "to": "dense"}`,
			`index layers.0.ffn: signs cannot cancel, because this model has fewer than two axes with +ffn or -ffn`},
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

// Indices with too many places for memory are refused before they are counted.
func TestTooManyPlaces(t *testing.T) {
	f := mustParse(t, `{"family": "many", "model_types": ["many"],
		"dims": [{"name": "n", "fields": ["n"]}], "loops": [{"name": "layer", "count": "n"}],
		"indices": [{"name": "head", "length": "n", "uses": "n"}, {"name": "qk", "per": ["head"], "length": "2", "uses": "n"}],
		"tensors": [{"name": "{layer}", "role": "embedding", "axes": ["head qk"]}]}`)
	if _, err := f.Expect([]byte(`{"n": 1000}`)); err != nil {
		t.Error(err)
	}
	_, err := f.Expect([]byte(`{"n": 200000}`))
	if want := `config.json: the model would have indices in more than 16777216 places (counted up to tensor "{layer}")`; err == nil || err.Error() != want {
		t.Error(err)
	}
}

// Contradictions between a linear layer and its bias, a norm's weight and its bias, and a norm and its readers are errors.
func TestPartners(t *testing.T) {
	for _, c := range []struct{ family, old, new, want string }{
		{"llama", `up_proj.bias", "role": "bias", "axes": ["+ffn"]`, `up_proj.bias", "role": "bias", "axes": ["ffn"]`,
			`bias "{prefix}layers.{layer}.mlp.up_proj.bias": its axis is "ffn", but the output axis of "{prefix}layers.{layer}.mlp.up_proj.weight" is "+ffn": give both the same axis`},
		{"gpt2", `c_attn.bias", "role": "bias", "axes": ["head +qk | head -qk | head +v"]`, `c_attn.bias", "role": "bias", "axes": ["head (+qk | -qk | +v)"]`,
			`c_attn.bias": its axis is "head (+qk | -qk | +v)", but the output axis`},
		{"gpt2", `ln_1.bias", "role": "norm", "axes": ["residual & +attn_norm"]`, `ln_1.bias", "role": "norm", "axes": ["residual & -attn_norm"]`,
			`norm bias "{prefix}h.{layer}.ln_1.bias": its axis is "residual & -attn_norm", but the weight's axis is "residual & +attn_norm": give both the same axis`},
		{"llama", `["kv 2 -pair", "-residual & -attn_norm"]`, `["kv 2 -pair", "-residual & +attn_norm"]`,
			`tensor "{prefix}layers.{layer}.self_attn.k_proj.weight": needs an input axis like "residual & +attn_norm", the axis of its norm's weight "{prefix}layers.{layer}.input_layernorm.weight"`},
		{"llama", `["kv 2 -pair", "-residual & -attn_norm"]`, `["kv 2 -pair", "-residual & mlp_norm"]`, `needs an input axis like`},
		{"llama", `["residual & +mlp_norm"]`, `["+residual & +mlp_norm"]`, ``}, // a sign on the norm's weight and its readers: not this check's business
		{"llama", `["residual & +mlp_norm"]`, `["-residual & +mlp_norm"]`, `mlp.gate_proj.weight": needs an input axis like "-residual & +mlp_norm"`},
	} {
		text := source(t, c.family)
		changed := strings.ReplaceAll(text, c.old, c.new)
		if changed == text {
			t.Fatalf("%s: nothing replaced", c.old)
		}
		config := map[string]string{"llama": llamaConfig, "gpt2": gpt2Config}[c.family]
		_, err := mustParse(t, changed).Expect([]byte(config))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s for %s: got\n%v\nwant\n%s", c.new, c.old, err, c.want)
		}
	}
}
