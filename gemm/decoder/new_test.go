package decoder_test

import (
	"encoding/json"
	"errors"

	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// fields are changes to a config.json; nil makes a field null.
type fields map[string]any

// synthetic writes a small random model: a named configuration with changes.
func synthetic(t *testing.T, name string, changes fields) (dir string) {
	t.Helper()
	js := []byte("{}")
	if changes != nil {
		var err error
		js, err = json.Marshal(changes)
		testmodel.OK(t, err)
	}
	return testmodel.Folder(t, testmodel.Config(t, name, string(js)), synth.Options{Seed: 1})
}

// describe describes a small random model.
func describe(t *testing.T, name string, changes fields) (*decoder.Decoder, error) {
	t.Helper()
	return describeFolder(t, synthetic(t, name, changes))
}

func describeFolder(t *testing.T, dir string) (*decoder.Decoder, error) {
	t.Helper()
	m := testmodel.Open(t, dir)
	return decoder.New(m, testmodel.LayoutOf(t, m))
}

func TestWhatIsNotDescribedIsAnError(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes fields
		want    string
	}{
		{"llama-tiny", fields{"hidden_act": "mish"}, `hidden_act is "mish"; the forward pass supports gelu, gelu_fast, gelu_new`},
		{"llama-tiny", fields{"hidden_act": 3.0}, "hidden_act is 3, but must be a string, such as the default, silu"},
		{"llama-tiny", fields{"rms_norm_eps": -1.0}, "rms_norm_eps is -1, but must be above 0"},
		{"llama-tiny", fields{"rms_norm_eps": "small"}, "rms_norm_eps is small"},
		{"llama-tiny", fields{"quantization_config": map[string]any{"quant_method": "hqq"}}, "config.json: quantization_config: quant_method \"hqq\" is not known: the model's loss cannot be computed"},
		{"llama-tiny", fields{"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5; the forward pass supports 1 only"},
		{"llama-tiny", rope(fields{"rope_type": "dynamic", "factor": 4.0}), `rope_type is "dynamic"; the forward pass supports default, linear, llama3, longrope and yarn`},
		{"llama-tiny", rope(fields{"rope_type": "linear"}), "rope_parameters.factor is 0, but must be above 0"},
		{"llama-tiny", rope(fields{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 64.0}), "but must be above low_freq_factor"},
		{"llama-tiny", rope(fields{"rope_theta": 0.0}), "rope_theta is 0, but must be above 0"},
		{"llama-tiny", rope(fields{"partial_rotary_factor": 0.25}), "rope_parameters.partial_rotary_factor is 0.25"},
		{"llama-tiny", fields{"rope_parameters": nil, "rope_scaling": map[string]any{"type": "dynamic", "factor": 2.0}}, `"dynamic"`},
		{"llama-tiny", fields{"rope_scaling": map[string]any{"type": "linear", "factor": 2.0}}, "both rope_parameters and rope_scaling"},
		{"llama-tiny", fields{"rope_scaling": "linear"}, "rope_scaling is linear, but must be an object"},
		{"llama-tiny", fields{"architectures": []string{"LlamaModel"}}, "the checkpoint has no lm_head"},
		{"gpt2-tiny", fields{"activation_function": "gelu_10"}, `activation_function is "gelu_10"`},
		{"gpt2-tiny", fields{"scale_attn_weights": false}, "scale_attn_weights is false; the forward pass supports true only"},
		{"gpt2-tiny", fields{"scale_attn_by_inverse_layer_idx": true}, "scale_attn_by_inverse_layer_idx is true"},
		{"gpt2-tiny", fields{"add_cross_attention": true}, "add_cross_attention is true"},
		{"llama-tiny", rope(fields{"rope_type": "longrope", "original_max_position_embeddings": 16.0, "short_factor": []float64{1, 2}}), "rope_parameters.short_factor has 2 numbers, but needs one for each of 6 pairs"},
		{"phi3-long-tiny", fields{"rope_scaling": map[string]any{"type": "longrope", "short_factor": []float64{1, -1, 2}, "long_factor": []float64{1, 1, 2}}}, "short_factor contains -1, but may contain only numbers above 0"},
		{"gemma-tiny", fields{"use_bidirectional_attention": true}, "use_bidirectional_attention is true; the forward pass supports false only"},
		{"gemma2-tiny", fields{"layer_types": []string{"full_attention"}}, "layer_types is neither full_attention nor sliding_attention for layer 1"},
		{"gemma2-tiny", fields{"sliding_window": 0}, "sliding_window is 0, but must be above 0"},
		{"gemma2-tiny", fields{"query_pre_attn_scalar": -4}, "query_pre_attn_scalar is -4, but must be above 0"},
		{"gemma3-tiny", fields{"attn_logit_softcapping": 30}, "attn_logit_softcapping is 30; the forward pass supports null only"},
		{"mixtral-tiny", fields{"num_experts_per_tok": 99}, "num_experts_per_tok is 99, but must be from 1 to "},
		{"deepseek_v2-tiny", fields{"scoring_func": "sigmoid"}, "scoring_func is sigmoid; the forward pass supports softmax only"},
		{"deepseek_v2-tiny", fields{"norm_topk_prob": true}, "norm_topk_prob is true"},
		{"deepseek_v3-tiny", fields{"topk_method": "greedy"}, "topk_method is greedy"},
		{"deepseek_v3-tiny", fields{"n_group": 3}, "n_group is 3, but must divide 8, the number of experts, into groups of at least 2"},
		{"deepseek_v3-tiny", fields{"n_group": 8}, "n_group is 8, but must divide 8, the number of experts, into groups of at least 2"},
		{"deepseek_v3-tiny", fields{"topk_group": 5}, "topk_group is 5, but must be from 1 to "},
		{"opt-tiny", fields{"_remove_final_layer_norm": true}, "_remove_final_layer_norm is true"},
		{"opt-projected-tiny", nil, "do_layer_norm_before is false"},
		{"opt-projected-tiny", fields{"do_layer_norm_before": true}, "word_embed_proj_dim is 20; the forward pass supports 35 only"},
		{"llama-tiny", rope(fields{"rope_type": "yarn", "original_max_position_embeddings": 16.0}), "rope_parameters.factor is missing, which yarn needs"},
		{"bloom-tiny", fields{"apply_residual_connection_post_layernorm": true}, "apply_residual_connection_post_layernorm is true"},
	} {
		_, err := describe(t, test.name, test.changes)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %v: error %v, want one with %q", test.name, test.changes, err, test.want)
		}
	}
}

// rope returns a config with other rotary positions.
func rope(f fields) fields {
	return fields{"rope_parameters": map[string]any(f), "rope_scaling": nil, "rope_theta": nil}
}

// TestLayoutsThatDoNotFit: layouts of a user's family file that a Decoder cannot describe are errors.
func TestLayoutsThatDoNotFit(t *testing.T) {
	m := testmodel.Open(t, synthetic(t, "llama-tiny", nil))
	for want, spoil := range map[string]func(l *arch.Layout){
		"no self_attn.k_proj in layer 1":                   func(l *arch.Layout) { delete(l.Claims, "model.layers.1.self_attn.k_proj.weight") },
		"no norm, which":                                   func(l *arch.Layout) { delete(l.Claims, "model.norm.weight") },
		"is 128 × 48, but the forward pass needs 100 × 48": func(l *arch.Layout) { l.Dims["vocab"] = 100 },
		`"model.layers.0.mlp.down_proj.weight": the layer has 72 inputs, and the layers before it have 200 outputs; the forward pass needs 72 inputs and 144 outputs`: func(l *arch.Layout) {
			l.Claims["model.layers.0.mlp.down_proj.weight"].Axes = l.Claims["model.layers.0.self_attn.o_proj.weight"].Axes
		},
		`"model.layers.0.self_attn.o_proj.weight": the layer has 72 inputs, and the layers before it have 120 outputs; the forward pass needs 60 inputs and 100 outputs`: func(l *arch.Layout) {
			l.Dims["head_dim"] = 10
		},
		"6 query heads cannot share 4 KV heads":                           func(l *arch.Layout) { l.Dims["kv_heads"] = 4 },
		"11 of the 11 channels of a head rotate: the number must be even": func(l *arch.Layout) { l.Dims["head_dim"] = 11 },
		`tensor "model.norm.weight": has 2 dimensions, but the forward pass needs 1`: func(l *arch.Layout) {
			l.Claims["model.norm.weight"].Axes = l.Claims["lm_head.weight"].Axes
		},
	} {
		layout := testmodel.LayoutOf(t, m)
		spoil(layout)
		if _, err := decoder.New(m, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	layout := testmodel.LayoutOf(t, m)
	for want, config := range map[string][]byte{"config.json: is missing": nil, "config.json: unexpected end": []byte("{")} {
		m.Config = config
		if _, err := decoder.New(m, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestUnknownFamily(t *testing.T) {
	_, err := decoder.New(&weights.Model{}, &arch.Layout{Family: "abacus"})
	if !errors.Is(err, decoder.ErrNoForward) || !strings.Contains(err.Error(), "family abacus") {
		t.Errorf("error %v, want ErrNoForward that names the family", err)
	}
}
