package synth

import "testing"

func TestKinds(t *testing.T) {
	for name, kinds := range map[string]map[string]kind{
		"gpt2-tiny": {
			"transformer.wte.weight":             embedding,
			"transformer.wpe.weight":             embedding,
			"transformer.h.1.ln_1.weight":        norm,
			"transformer.h.1.ln_1.bias":          bias,
			"transformer.h.1.attn.c_attn.weight": conv1D,
			"transformer.h.1.attn.c_attn.bias":   bias,
			"transformer.h.1.mlp.c_proj.weight":  conv1D,
		},
		"llama-tiny": {
			"model.embed_tokens.weight":              embedding,
			"model.layers.1.input_layernorm.weight":  norm,
			"model.layers.1.self_attn.q_proj.weight": linear,
			"model.layers.1.mlp.down_proj.weight":    linear,
			"model.norm.weight":                      norm,
			"lm_head.weight":                         linear,
		},
	} {
		m, err := newModel(named(t, name), Options{ShardBytes: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		for tensor, want := range kinds {
			if got, ok := m.kinds[tensor]; !ok || got != want {
				t.Errorf("%s: %s is of kind %d (known: %v), want %d", name, tensor, got, ok, want)
			}
		}
	}
}
