package forward_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// variant is a small model.
type variant struct {
	name, base string
	changes    fields
}

// bases returns the catalogue's tiny models that can be computed.
func bases(t *testing.T) (all []variant) {
	t.Helper()
	for _, name := range synth.Names() {
		if !strings.HasSuffix(name, "-tiny") || refused[name] != "" {
			continue
		}
		config, err := synth.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := arch.Detect(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = forward.New(&weights.Model{Config: config}, &arch.Layout{Family: f.Name})
		if !errors.Is(err, forward.ErrNoForward) {
			all = append(all, variant{name, name, nil})
		}
	}
	return all
}

// forms are bases that together have every kind of part; with -short, as under the race detector, no
// more than that.
func forms(t *testing.T) []variant {
	t.Helper()
	all := bases(t)
	if !testing.Short() {
		return all
	}
	few := []string{"bloom-tiny", "deepseek_v3-tiny", "falcon-tiny", "gemma3-tiny", "gpt2-tiny", "mixtral-tiny"}
	all = slices.DeleteFunc(all, func(v variant) bool { return !slices.Contains(few, v.name) })
	if len(all) != len(few) {
		t.Fatalf("%v are not all among the bases", few)
	}
	return all
}

// refused has the tiny models whose config.json asks for an operation that is not implemented, with the field.
var refused = map[string]string{"opt-projected-tiny": "do_layer_norm_before"}

// null is JSON's null; nil removes a field.
var null = json.RawMessage("null")

// rope returns a config with other rotary positions.
func rope(f fields) fields {
	return fields{"rope_parameters": map[string]any(f), "rope_scaling": nil, "rope_theta": nil}
}

// yarn is rope with yarn beyond 16 positions.
func yarn(f fields) fields {
	all := fields{"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16.0}
	for name, v := range f {
		all[name] = v
	}
	return rope(all)
}

// variants differ from a family's tiny model in what they compute.
var variants = []variant{
	{"llama tied", "llama-tiny", fields{"tie_word_embeddings": true}},
	{"llama with biases", "llama-tiny", fields{"attention_bias": true, "mlp_bias": true}},
	{"llama with one group", "llama-tiny", fields{"num_key_value_heads": 6}},
	{"llama with ReLU", "llama-tiny", fields{"hidden_act": "relu"}},
	{"llama, older fields", "llama-tiny", fields{"rope_parameters": nil, "rope_theta": 500.0, "rope_scaling": nil}},
	{"llama, theta beside", "llama-tiny", fields{"rope_parameters": nil, "rope_theta": 300.0, "rope_scaling": map[string]any{"type": "linear", "factor": 2.5}}},
	{"llama 3.1", "llama-tiny", rope(fields{"rope_type": "llama3", "rope_theta": 1000.0, "factor": 8.0,
		"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64.0})},
	{"llama with yarn", "llama-tiny", yarn(nil)},
	{"llama with yarn, other ramp", "llama-tiny", yarn(fields{"beta_fast": 3.0, "beta_slow": 0.2, "truncate": false})},
	{"llama with yarn, attention factor", "llama-tiny", yarn(fields{"attention_factor": 1.5})},
	{"llama with yarn, two magnitudes", "llama-tiny", yarn(fields{"mscale": 2.0, "mscale_all_dim": 0.5})},

	{"mistral without a window", "mistral-tiny", fields{"sliding_window": null}},
	{"mistral with a wide window", "mistral-tiny", fields{"sliding_window": nil}},
	{"mistral with a window of one", "mistral-tiny", fields{"sliding_window": 1}},
	{"mixtral with one expert", "mixtral-tiny", fields{"num_experts_per_tok": 1}},
	{"mixtral with a window", "mixtral-tiny", fields{"sliding_window": 5}},
	{"qwen2 with windows by default", "qwen2-tiny", fields{"sliding_window": nil}},
	{"qwen2 without windows", "qwen2-tiny", fields{"use_sliding_window": false}},
	{"qwen2 with a window in every layer", "qwen2-tiny", fields{"max_window_layers": 0}},
	{"qwen2 with windows too late", "qwen2-tiny", fields{"max_window_layers": nil}},
	{"qwen2 with an early window", "qwen2-tiny", fields{"use_sliding_window": true, "sliding_window": 5, "layer_types": []string{"sliding_attention", "full_attention"}}},
	{"qwen3 with biases", "qwen3-tiny", fields{"attention_bias": true}},
	{"qwen3 with windows", "qwen3-tiny", fields{"use_sliding_window": true, "sliding_window": 3, "max_window_layers": 0, "layer_types": nil}},
	{"qwen3_moe, other weights", "qwen3_moe-tiny", fields{"norm_topk_prob": false}},
	{"qwen3_moe, windows", "qwen3_moe-tiny", fields{"use_sliding_window": true, "sliding_window": 3}},
	{"qwen3_moe, one expert", "qwen3_moe-tiny", fields{"num_experts_per_tok": 1}},

	{"gemma untied", "gemma-tiny", fields{"tie_word_embeddings": false}},
	{"gemma with another GELU", "gemma-tiny", fields{"hidden_act": "gelu"}},
	{"gemma2 without caps", "gemma2-tiny", fields{"attn_logit_softcapping": null, "final_logit_softcapping": null}},
	{"gemma2, caps by default", "gemma2-tiny", fields{"attn_logit_softcapping": nil, "final_logit_softcapping": nil}},
	{"gemma2, windows swapped", "gemma2-tiny", fields{"layer_types": []string{"full_attention", "sliding_attention"}}},
	{"gemma2, no windows", "gemma2-tiny", fields{"sliding_window": null}},
	{"gemma2, scale by default", "gemma2-tiny", fields{"query_pre_attn_scalar": nil}},
	{"gemma3, older fields", "gemma3-tiny", fields{"rope_parameters": nil, "rope_theta": 500.0, "rope_local_base_freq": 30.0,
		"rope_scaling": map[string]any{"rope_type": "linear", "factor": 2.0}, "layer_types": nil, "sliding_window_pattern": 2}},
	{"gemma3, pattern by default", "gemma3-tiny", fields{"layer_types": nil, "rope_parameters": nil}},
	{"gemma3 with a cap", "gemma3-tiny", fields{"final_logit_softcapping": 1.5}},
	{"phi3 with half of the channels turned", "phi3-tiny", fields{"partial_rotary_factor": 0.5, "rope_parameters": nil}},
	{"phi3 without a window", "phi3-tiny", fields{"sliding_window": nil}},
	{"phi3, one more attention factor", "phi3-long-tiny", fields{"rope_scaling": map[string]any{"type": "su", "attention_factor": 1.4,
		"long_factor": []float64{1, 2.5, 6}, "short_factor": []float64{1, 1.25, 1.5}}}},
	{"olmo2 with biases", "olmo2-tiny", fields{"attention_bias": true}},
	{"granite, another embedding", "granite-tiny", fields{"embedding_multiplier": 7.5}},
	{"granite, other residuals", "granite-tiny", fields{"residual_multiplier": 1.0}},
	{"granite, other scores", "granite-tiny", fields{"attention_multiplier": 0.9}},
	{"granite, other logits", "granite-tiny", fields{"logits_scaling": nil}},

	{"deepseek_v2, all experts", "deepseek_v2-tiny", fields{"topk_method": "greedy"}},
	{"deepseek_v2, another scale", "deepseek_v2-tiny", fields{"routed_scaling_factor": 3.5}},
	{"deepseek_v2, no yarn", "deepseek_v2-tiny", fields{"rope_scaling": nil}},
	{"deepseek_v2, no shared experts", "deepseek_v2-tiny", fields{"n_shared_experts": nil}},
	{"deepseek_v2, all sparse", "deepseek_v2-tiny", fields{"first_k_dense_replace": 0}},
	{"deepseek_v2, long queries", "deepseek_v2-tiny", fields{"q_lora_rank": null}},
	{"deepseek_v2, biases", "deepseek_v2-tiny", fields{"attention_bias": true, "mlp_bias": true}},
	{"deepseek_v3, halves", "deepseek_v3-tiny", fields{"rope_interleave": false}},
	{"deepseek_v3, other weights", "deepseek_v3-tiny", fields{"norm_topk_prob": false}},
	{"deepseek_v3, another scale", "deepseek_v3-tiny", fields{"routed_scaling_factor": 1.0}},
	{"deepseek_v3, one group", "deepseek_v3-tiny", fields{"n_group": 1, "topk_group": 1}},

	{"gpt2 untied", "gpt2-tiny", fields{"tie_word_embeddings": false}},
	{"gpt2 with few neurons", "gpt2-tiny", fields{"n_inner": 70, "layer_norm_epsilon": 1e-3}},
	{"gpt_neox, one half after the other", "gpt_neox-tiny", fields{"use_parallel_residual": false}},
	{"gpt_neox, few channels turned", "gpt_neox-tiny", fields{"rotary_pct": nil}},
	{"gpt_neox, another theta", "gpt_neox-tiny", fields{"rotary_emb_base": 20}},
	{"gpt_neox, newer fields", "gpt_neox-tiny", fields{"rotary_emb_base": nil, "rotary_pct": nil,
		"rope_parameters": fields{"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 1.0}}},
	{"gpt_neox, another GELU", "gpt_neox-tiny", fields{"hidden_act": "gelu_new"}},
	{"gpt_neox without biases", "gpt_neox-tiny", fields{"attention_bias": false}},
	{"opt with GELU", "opt-tiny", fields{"activation_function": "gelu"}},
	{"opt without biases", "opt-tiny", fields{"enable_bias": false}},
	{"opt without weights of norms", "opt-tiny", fields{"layer_norm_elementwise_affine": false}},
	{"opt untied", "opt-tiny", fields{"tie_word_embeddings": false}},
	{"bloom with four heads", "bloom-tiny", fields{"n_head": 4, "num_attention_heads": nil}},
	{"bloom untied", "bloom-tiny", fields{"tie_word_embeddings": false}},
	{"falcon, one half after the other", "falcon-tiny", fields{"parallel_attn": false}},
	{"falcon, many keys", "falcon-tiny", fields{"multi_query": false}},
	{"falcon, one norm for both", "falcon-40b-tiny", fields{"num_ln_in_parallel_attn": 1}},
	{"falcon with ALiBi and groups", "falcon-40b-tiny", fields{"alibi": true}},
	{"falcon with ALiBi, slopes that round", "falcon-rw-tiny", fields{"num_attention_heads": 12}},
	{"bloom with slopes that do not", "bloom-tiny", fields{"n_head": 12, "num_attention_heads": nil}},
	{"falcon with ALiBi, parallel", "falcon-rw-tiny", fields{"parallel_attn": true}},
	{"falcon without ALiBi", "falcon-rw-tiny", fields{"alibi": false}},
	{"starcoder2 without biases", "starcoder2-tiny", fields{"use_bias": false}},
	{"starcoder2, another window", "starcoder2-tiny", fields{"sliding_window": 3}},
	{"starcoder2 untied", "starcoder2-tiny", fields{"tie_word_embeddings": false}},
}

func TestLossIsThatOfTheReferenceModel(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tests of workers share as much")
	}
	for _, test := range append(bases(t), variants...) {
		t.Run(test.name, func(t *testing.T) {
			m, d := model(t, test.base, test.changes)
			holdAgainstPlain(t, m, d)
		})
	}
}

// TestVariantsDiffer: every variant changes the losses, so no implementation ignores its field.
func TestVariantsDiffer(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	tokens := sequences(64, 9, 32)
	of := map[string]*forward.Scores{}
	for _, test := range variants {
		if of[test.base] == nil {
			m, d := model(t, test.base, nil)
			of[test.base] = run(t, d, forward.Stored(m), tokens)
		}
		m, d := model(t, test.base, test.changes)
		if cmp.Equal(of[test.base], run(t, d, forward.Stored(m), tokens)) {
			t.Errorf("%s has the losses of %s", test.name, test.base)
		}
	}
}
