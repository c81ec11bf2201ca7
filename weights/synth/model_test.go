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
		"gemma2-tiny": {
			"model.layers.1.input_layernorm.weight":            norm1p,
			"model.layers.1.post_feedforward_layernorm.weight": norm1p,
			"model.norm.weight":                                norm1p,
		},
		"qwen3_moe-tiny": {
			"model.layers.1.mlp.gate.weight":                linear,
			"model.layers.1.mlp.experts.2.down_proj.weight": linear,
			"model.layers.1.self_attn.q_norm.weight":        norm,
		},
		"deepseek_v3-tiny": {
			"model.layers.1.mlp.gate.e_score_correction_bias":  bias,
			"model.layers.1.self_attn.kv_a_layernorm.weight":   norm,
			"model.layers.1.mlp.shared_experts.up_proj.weight": linear,
		},
		"bert-tiny": {
			"bert.embeddings.token_type_embeddings.weight": embedding,
			"bert.embeddings.LayerNorm.weight":             norm,
			"bert.embeddings.LayerNorm.bias":               bias,
		},
		"vit-tiny": {
			"vit.embeddings.cls_token":                          embedding,
			"vit.embeddings.position_embeddings":                embedding,
			"vit.embeddings.patch_embeddings.projection.weight": kernel,
			"vit.embeddings.patch_embeddings.projection.bias":   bias,
		},
		"whisper-tiny": {"model.encoder.conv2.weight": kernel, "model.decoder.embed_positions.weight": embedding},
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
