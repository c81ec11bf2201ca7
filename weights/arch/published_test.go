package arch

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// published has checkpoints of the Hugging Face Hub: the relevant fields of config.json, with names and shapes written by hand,
// not by Expect. {0-27} stands for each of these numbers.
var published = map[string]struct {
	config, tensors string
	unclaimed       []string // UnclaimedGroups; all other tensors are claimed
	blocked         []string // kinds of indices; all others are free
}{
	"Llama-3.2-1B": {
		config: `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192,
			"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
			"tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false}`,
		tensors: `model.embed_tokens.weight 128256 2048
			model.layers.{0-15}.input_layernorm.weight 2048
			model.layers.{0-15}.mlp.down_proj.weight 2048 8192
			model.layers.{0-15}.mlp.gate_proj.weight 8192 2048
			model.layers.{0-15}.mlp.up_proj.weight 8192 2048
			model.layers.{0-15}.post_attention_layernorm.weight 2048
			model.layers.{0-15}.self_attn.k_proj.weight 512 2048
			model.layers.{0-15}.self_attn.o_proj.weight 2048 2048
			model.layers.{0-15}.self_attn.q_proj.weight 2048 2048
			model.layers.{0-15}.self_attn.v_proj.weight 512 2048
			model.norm.weight 2048`,
	},
	"Qwen2.5-0.5B": {
		config: `{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 896, "intermediate_size": 4864,
			"max_window_layers": 24, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
			"tie_word_embeddings": true, "use_mrope": false, "use_sliding_window": false}`,
		tensors: `model.embed_tokens.weight 151936 896
			model.layers.{0-23}.input_layernorm.weight 896
			model.layers.{0-23}.mlp.down_proj.weight 896 4864
			model.layers.{0-23}.mlp.gate_proj.weight 4864 896
			model.layers.{0-23}.mlp.up_proj.weight 4864 896
			model.layers.{0-23}.post_attention_layernorm.weight 896
			model.layers.{0-23}.self_attn.k_proj.bias 128
			model.layers.{0-23}.self_attn.k_proj.weight 128 896
			model.layers.{0-23}.self_attn.o_proj.weight 896 896
			model.layers.{0-23}.self_attn.q_proj.bias 896
			model.layers.{0-23}.self_attn.q_proj.weight 896 896
			model.layers.{0-23}.self_attn.v_proj.bias 128
			model.layers.{0-23}.self_attn.v_proj.weight 128 896
			model.norm.weight 896`,
	},
	"Mixtral-8x7B-v0.1": {
		config: `{"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
			"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8,
			"num_experts_per_tok": 2, "vocab_size": 32000, "tie_word_embeddings": false, "sliding_window": null}`,
		tensors: `lm_head.weight 32000 4096
			model.embed_tokens.weight 32000 4096
			model.layers.{0-31}.block_sparse_moe.experts.{0-7}.w1.weight 14336 4096
			model.layers.{0-31}.block_sparse_moe.experts.{0-7}.w2.weight 4096 14336
			model.layers.{0-31}.block_sparse_moe.experts.{0-7}.w3.weight 14336 4096
			model.layers.{0-31}.block_sparse_moe.gate.weight 8 4096
			model.layers.{0-31}.input_layernorm.weight 4096
			model.layers.{0-31}.post_attention_layernorm.weight 4096
			model.layers.{0-31}.self_attn.k_proj.weight 1024 4096
			model.layers.{0-31}.self_attn.o_proj.weight 4096 4096
			model.layers.{0-31}.self_attn.q_proj.weight 4096 4096
			model.layers.{0-31}.self_attn.v_proj.weight 1024 4096
			model.norm.weight 4096`,
	},
	// The weights are FP8 with a scale for each block of 128 × 128. The last layer is for multi-token prediction.
	"DeepSeek-V3": {
		config: `{"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "first_k_dense_replace": 3,
			"hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
			"n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128, "num_hidden_layers": 61,
			"num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
			"qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280, "tie_word_embeddings": false,
			"quantization_config": {"fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}}`,
		tensors: `lm_head.weight 129280 7168
			model.embed_tokens.weight 129280 7168
			model.layers.{0-61}.input_layernorm.weight 7168
			model.layers.{0-61}.post_attention_layernorm.weight 7168
			model.layers.{0-61}.self_attn.kv_a_layernorm.weight 512
			model.layers.{0-61}.self_attn.kv_a_proj_with_mqa.weight 576 7168
			model.layers.{0-61}.self_attn.kv_a_proj_with_mqa.weight_scale_inv 5 56
			model.layers.{0-61}.self_attn.kv_b_proj.weight 32768 512
			model.layers.{0-61}.self_attn.kv_b_proj.weight_scale_inv 256 4
			model.layers.{0-61}.self_attn.o_proj.weight 7168 16384
			model.layers.{0-61}.self_attn.o_proj.weight_scale_inv 56 128
			model.layers.{0-61}.self_attn.q_a_layernorm.weight 1536
			model.layers.{0-61}.self_attn.q_a_proj.weight 1536 7168
			model.layers.{0-61}.self_attn.q_a_proj.weight_scale_inv 12 56
			model.layers.{0-61}.self_attn.q_b_proj.weight 24576 1536
			model.layers.{0-61}.self_attn.q_b_proj.weight_scale_inv 192 12
			model.layers.{0-2}.mlp.down_proj.weight 7168 18432
			model.layers.{0-2}.mlp.down_proj.weight_scale_inv 56 144
			model.layers.{0-2}.mlp.gate_proj.weight 18432 7168
			model.layers.{0-2}.mlp.gate_proj.weight_scale_inv 144 56
			model.layers.{0-2}.mlp.up_proj.weight 18432 7168
			model.layers.{0-2}.mlp.up_proj.weight_scale_inv 144 56
			model.layers.{3-61}.mlp.experts.{0-255}.down_proj.weight 7168 2048
			model.layers.{3-61}.mlp.experts.{0-255}.down_proj.weight_scale_inv 56 16
			model.layers.{3-61}.mlp.experts.{0-255}.gate_proj.weight 2048 7168
			model.layers.{3-61}.mlp.experts.{0-255}.gate_proj.weight_scale_inv 16 56
			model.layers.{3-61}.mlp.experts.{0-255}.up_proj.weight 2048 7168
			model.layers.{3-61}.mlp.experts.{0-255}.up_proj.weight_scale_inv 16 56
			model.layers.{3-61}.mlp.gate.e_score_correction_bias 256
			model.layers.{3-61}.mlp.gate.weight 256 7168
			model.layers.{3-61}.mlp.shared_experts.down_proj.weight 7168 2048
			model.layers.{3-61}.mlp.shared_experts.down_proj.weight_scale_inv 56 16
			model.layers.{3-61}.mlp.shared_experts.gate_proj.weight 2048 7168
			model.layers.{3-61}.mlp.shared_experts.gate_proj.weight_scale_inv 16 56
			model.layers.{3-61}.mlp.shared_experts.up_proj.weight 2048 7168
			model.layers.{3-61}.mlp.shared_experts.up_proj.weight_scale_inv 16 56
			model.layers.61.embed_tokens.weight 129280 7168
			model.layers.61.enorm.weight 7168
			model.layers.61.hnorm.weight 7168
			model.layers.61.eh_proj.weight 7168 14336
			model.layers.61.shared_head.head.weight 129280 7168
			model.layers.61.shared_head.norm.weight 7168
			model.norm.weight 7168`,
		unclaimed: []string{
			"model.layers.N.mlp.down_proj.weight_scale_inv (3 tensors)",
			"model.layers.N.mlp.gate_proj.weight_scale_inv (3 tensors)",
			"model.layers.N.mlp.up_proj.weight_scale_inv (3 tensors)",
			"model.layers.N.self_attn.kv_a_proj_with_mqa.weight_scale_inv (61 tensors)",
			"model.layers.N.self_attn.kv_b_proj.weight_scale_inv (61 tensors)",
			"model.layers.N.self_attn.o_proj.weight_scale_inv (61 tensors)",
			"model.layers.N.self_attn.q_a_proj.weight_scale_inv (61 tensors)",
			"model.layers.N.self_attn.q_b_proj.weight_scale_inv (61 tensors)",
			"model.layers.N.mlp.experts.N.down_proj.weight_scale_inv (14848 tensors)",
			"model.layers.N.mlp.experts.N.gate_proj.weight_scale_inv (14848 tensors)",
			"model.layers.N.mlp.experts.N.up_proj.weight_scale_inv (14848 tensors)",
			"model.layers.N.mlp.shared_experts.down_proj.weight_scale_inv (58 tensors)",
			"model.layers.N.mlp.shared_experts.gate_proj.weight_scale_inv (58 tensors)",
			"model.layers.N.mlp.shared_experts.up_proj.weight_scale_inv (58 tensors)",
			"model.layers.61 (1564 tensors)",
		},
		blocked: []string{"residual", "attn_norm", "mlp_norm", "moe_norm", "final_norm", "q_latent", "q_latent_norm", "kv_latent",
			"kv_latent_norm", "head", "nope", "pair", "v", "ffn", "expert_ffn", "shared_ffn"},
	},
	"gemma-2-9b": {
		config: `{"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "head_dim": 256, "hidden_size": 3584,
			"intermediate_size": 14336, "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8, "vocab_size": 256000}`,
		tensors: `model.embed_tokens.weight 256000 3584
			model.layers.{0-41}.input_layernorm.weight 3584
			model.layers.{0-41}.mlp.down_proj.weight 3584 14336
			model.layers.{0-41}.mlp.gate_proj.weight 14336 3584
			model.layers.{0-41}.mlp.up_proj.weight 14336 3584
			model.layers.{0-41}.post_attention_layernorm.weight 3584
			model.layers.{0-41}.post_feedforward_layernorm.weight 3584
			model.layers.{0-41}.pre_feedforward_layernorm.weight 3584
			model.layers.{0-41}.self_attn.k_proj.weight 2048 3584
			model.layers.{0-41}.self_attn.o_proj.weight 3584 4096
			model.layers.{0-41}.self_attn.q_proj.weight 4096 3584
			model.layers.{0-41}.self_attn.v_proj.weight 2048 3584
			model.norm.weight 3584`,
	},
	"gemma-3-4b-it": {
		config: `{"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "mm_tokens_per_image": 256,
			"text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
				"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
			"vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
				"num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}}`,
		tensors: `language_model.model.embed_tokens.weight 262208 2560
			language_model.model.layers.{0-33}.input_layernorm.weight 2560
			language_model.model.layers.{0-33}.mlp.down_proj.weight 2560 10240
			language_model.model.layers.{0-33}.mlp.gate_proj.weight 10240 2560
			language_model.model.layers.{0-33}.mlp.up_proj.weight 10240 2560
			language_model.model.layers.{0-33}.post_attention_layernorm.weight 2560
			language_model.model.layers.{0-33}.post_feedforward_layernorm.weight 2560
			language_model.model.layers.{0-33}.pre_feedforward_layernorm.weight 2560
			language_model.model.layers.{0-33}.self_attn.k_norm.weight 256
			language_model.model.layers.{0-33}.self_attn.k_proj.weight 1024 2560
			language_model.model.layers.{0-33}.self_attn.o_proj.weight 2560 2048
			language_model.model.layers.{0-33}.self_attn.q_norm.weight 256
			language_model.model.layers.{0-33}.self_attn.q_proj.weight 2048 2560
			language_model.model.layers.{0-33}.self_attn.v_proj.weight 1024 2560
			language_model.model.norm.weight 2560
			multi_modal_projector.mm_input_projection_weight 1152 2560
			multi_modal_projector.mm_soft_emb_norm.weight 1152
			vision_tower.vision_model.embeddings.patch_embedding.bias 1152
			vision_tower.vision_model.embeddings.patch_embedding.weight 1152 3 14 14
			vision_tower.vision_model.embeddings.position_embedding.weight 4096 1152
			vision_tower.vision_model.encoder.layers.{0-26}.mlp.fc1.weight 4304 1152
			vision_tower.vision_model.post_layernorm.weight 1152`,
		unclaimed: []string{"multi_modal_projector (2 tensors)", "vision_tower (31 tensors)"},
		blocked:   []string{"residual", "final_norm"},
	},
	"Phi-4-mini-instruct": {
		config: `{"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "attention_bias": false, "hidden_size": 3072, "intermediate_size": 8192,
			"num_attention_heads": 24, "num_hidden_layers": 32, "num_key_value_heads": 8, "partial_rotary_factor": 0.75,
			"tie_word_embeddings": true, "vocab_size": 200064}`,
		tensors: `model.embed_tokens.weight 200064 3072
			model.layers.{0-31}.input_layernorm.weight 3072
			model.layers.{0-31}.mlp.down_proj.weight 3072 8192
			model.layers.{0-31}.mlp.gate_up_proj.weight 16384 3072
			model.layers.{0-31}.post_attention_layernorm.weight 3072
			model.layers.{0-31}.self_attn.o_proj.weight 3072 3072
			model.layers.{0-31}.self_attn.qkv_proj.weight 5120 3072
			model.norm.weight 3072`,
	},
	"OLMo-2-1124-7B": {
		config: `{"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "hidden_size": 4096, "intermediate_size": 11008,
			"num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "tie_word_embeddings": false, "vocab_size": 100352}`,
		tensors: `lm_head.weight 100352 4096
			model.embed_tokens.weight 100352 4096
			model.layers.{0-31}.mlp.down_proj.weight 4096 11008
			model.layers.{0-31}.mlp.gate_proj.weight 11008 4096
			model.layers.{0-31}.mlp.up_proj.weight 11008 4096
			model.layers.{0-31}.post_attention_layernorm.weight 4096
			model.layers.{0-31}.post_feedforward_layernorm.weight 4096
			model.layers.{0-31}.self_attn.k_norm.weight 4096
			model.layers.{0-31}.self_attn.k_proj.weight 4096 4096
			model.layers.{0-31}.self_attn.o_proj.weight 4096 4096
			model.layers.{0-31}.self_attn.q_norm.weight 4096
			model.layers.{0-31}.self_attn.q_proj.weight 4096 4096
			model.layers.{0-31}.self_attn.v_proj.weight 4096 4096
			model.norm.weight 4096`,
	},
	"gpt2": {
		config: `{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
			"n_positions": 1024, "vocab_size": 50257}`,
		tensors: `h.{0-11}.attn.bias 1 1 1024 1024
			h.{0-11}.attn.c_attn.bias 2304
			h.{0-11}.attn.c_attn.weight 768 2304
			h.{0-11}.attn.c_proj.bias 768
			h.{0-11}.attn.c_proj.weight 768 768
			h.{0-11}.ln_1.bias 768
			h.{0-11}.ln_1.weight 768
			h.{0-11}.ln_2.bias 768
			h.{0-11}.ln_2.weight 768
			h.{0-11}.mlp.c_fc.bias 3072
			h.{0-11}.mlp.c_fc.weight 768 3072
			h.{0-11}.mlp.c_proj.bias 768
			h.{0-11}.mlp.c_proj.weight 3072 768
			ln_f.bias 768
			ln_f.weight 768
			wpe.weight 1024 768
			wte.weight 50257 768`,
	},
	"pythia-70m": {
		config: `{"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "hidden_size": 512, "intermediate_size": 2048,
			"num_attention_heads": 8, "num_hidden_layers": 6, "rotary_pct": 0.25, "tie_word_embeddings": false,
			"use_parallel_residual": true, "vocab_size": 50304}`,
		tensors: `embed_out.weight 50304 512
			gpt_neox.embed_in.weight 50304 512
			gpt_neox.final_layer_norm.bias 512
			gpt_neox.final_layer_norm.weight 512
			gpt_neox.layers.{0-5}.attention.bias 1 1 2048 2048
			gpt_neox.layers.{0-5}.attention.dense.bias 512
			gpt_neox.layers.{0-5}.attention.dense.weight 512 512
			gpt_neox.layers.{0-5}.attention.masked_bias
			gpt_neox.layers.{0-5}.attention.query_key_value.bias 1536
			gpt_neox.layers.{0-5}.attention.query_key_value.weight 1536 512
			gpt_neox.layers.{0-5}.attention.rotary_emb.inv_freq 8
			gpt_neox.layers.{0-5}.input_layernorm.bias 512
			gpt_neox.layers.{0-5}.input_layernorm.weight 512
			gpt_neox.layers.{0-5}.mlp.dense_4h_to_h.bias 512
			gpt_neox.layers.{0-5}.mlp.dense_4h_to_h.weight 512 2048
			gpt_neox.layers.{0-5}.mlp.dense_h_to_4h.bias 2048
			gpt_neox.layers.{0-5}.mlp.dense_h_to_4h.weight 2048 512
			gpt_neox.layers.{0-5}.post_attention_layernorm.bias 512
			gpt_neox.layers.{0-5}.post_attention_layernorm.weight 512`,
	},
	"opt-125m": {
		config: `{"model_type": "opt", "architectures": ["OPTForCausalLM"], "_remove_final_layer_norm": false, "activation_function": "relu",
			"do_layer_norm_before": true, "ffn_dim": 3072, "hidden_size": 768, "max_position_embeddings": 2048, "num_attention_heads": 12,
			"num_hidden_layers": 12, "vocab_size": 50272, "word_embed_proj_dim": 768}`,
		tensors: `decoder.embed_positions.weight 2050 768
			decoder.embed_tokens.weight 50272 768
			decoder.final_layer_norm.bias 768
			decoder.final_layer_norm.weight 768
			` + optLayers("decoder", 12, 768, 3072),
	},
	"opt-350m": {
		config: `{"model_type": "opt", "architectures": ["OPTForCausalLM"], "_remove_final_layer_norm": false, "activation_function": "relu",
			"do_layer_norm_before": false, "ffn_dim": 4096, "hidden_size": 1024, "max_position_embeddings": 2048, "num_attention_heads": 16,
			"num_hidden_layers": 24, "vocab_size": 50272, "word_embed_proj_dim": 512}`,
		tensors: `decoder.embed_positions.weight 2050 1024
			decoder.embed_tokens.weight 50272 512
			decoder.project_in.weight 1024 512
			decoder.project_out.weight 512 1024
			` + optLayers("decoder", 24, 1024, 4096),
	},
	// Its text_config omits the fields whose values are the defaults of OPT's first models.
	"blip2-opt-2.7b": {
		config: `{"model_type": "blip-2", "architectures": ["Blip2ForConditionalGeneration"], "tie_word_embeddings": true,
			"text_config": {"activation_dropout": 0.0, "architectures": ["OPTForCausalLM"], "ffn_dim": 10240, "hidden_size": 2560,
				"model_type": "opt", "num_attention_heads": 32, "num_hidden_layers": 32, "word_embed_proj_dim": 2560}}`,
		tensors: `language_model.lm_head.weight 50272 2560
			language_model.model.decoder.embed_positions.weight 2050 2560
			language_model.model.decoder.embed_tokens.weight 50272 2560
			language_model.model.decoder.final_layer_norm.bias 2560
			language_model.model.decoder.final_layer_norm.weight 2560
			language_projection.bias 2560
			language_projection.weight 2560 768
			query_tokens 1 32 768
			` + optLayers("language_model.model.decoder", 32, 2560, 10240),
		unclaimed: []string{"language_projection (2 tensors)", "query_tokens"},
		blocked:   []string{"residual", "final_norm"},
	},
	"bloom-560m": {
		config: `{"model_type": "bloom", "architectures": ["BloomForCausalLM"], "apply_residual_connection_post_layernorm": false,
			"n_embed": 1024, "n_inner": null, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880}`,
		tensors: `h.{0-23}.input_layernorm.bias 1024
			h.{0-23}.input_layernorm.weight 1024
			h.{0-23}.mlp.dense_4h_to_h.bias 1024
			h.{0-23}.mlp.dense_4h_to_h.weight 1024 4096
			h.{0-23}.mlp.dense_h_to_4h.bias 4096
			h.{0-23}.mlp.dense_h_to_4h.weight 4096 1024
			h.{0-23}.post_attention_layernorm.bias 1024
			h.{0-23}.post_attention_layernorm.weight 1024
			h.{0-23}.self_attention.dense.bias 1024
			h.{0-23}.self_attention.dense.weight 1024 1024
			h.{0-23}.self_attention.query_key_value.bias 3072
			h.{0-23}.self_attention.query_key_value.weight 3072 1024
			ln_f.bias 1024
			ln_f.weight 1024
			word_embeddings.weight 250880 1024
			word_embeddings_layernorm.bias 1024
			word_embeddings_layernorm.weight 1024`,
	},
	"falcon-7b": {
		config: `{"model_type": "falcon", "architectures": ["FalconForCausalLM"], "alibi": false, "bias": false, "hidden_size": 4544,
			"multi_query": true, "new_decoder_architecture": false, "num_attention_heads": 71, "num_hidden_layers": 32,
			"num_kv_heads": 71, "parallel_attn": true, "vocab_size": 65024}`,
		tensors: `lm_head.weight 65024 4544
			transformer.h.{0-31}.input_layernorm.bias 4544
			transformer.h.{0-31}.input_layernorm.weight 4544
			transformer.h.{0-31}.mlp.dense_4h_to_h.weight 4544 18176
			transformer.h.{0-31}.mlp.dense_h_to_4h.weight 18176 4544
			transformer.h.{0-31}.self_attention.dense.weight 4544 4544
			transformer.h.{0-31}.self_attention.query_key_value.weight 4672 4544
			transformer.ln_f.bias 4544
			transformer.ln_f.weight 4544
			transformer.word_embeddings.weight 65024 4544`,
	},
	"falcon-40b": {
		config: `{"model_type": "falcon", "architectures": ["FalconForCausalLM"], "alibi": false, "bias": false, "hidden_size": 8192,
			"multi_query": true, "new_decoder_architecture": true, "num_attention_heads": 128, "num_hidden_layers": 60,
			"num_kv_heads": 8, "parallel_attn": true, "vocab_size": 65024}`,
		tensors: `lm_head.weight 65024 8192
			transformer.h.{0-59}.ln_attn.bias 8192
			transformer.h.{0-59}.ln_attn.weight 8192
			transformer.h.{0-59}.ln_mlp.bias 8192
			transformer.h.{0-59}.ln_mlp.weight 8192
			transformer.h.{0-59}.mlp.dense_4h_to_h.weight 8192 32768
			transformer.h.{0-59}.mlp.dense_h_to_4h.weight 32768 8192
			transformer.h.{0-59}.self_attention.dense.weight 8192 8192
			transformer.h.{0-59}.self_attention.query_key_value.weight 9216 8192
			transformer.ln_f.bias 8192
			transformer.ln_f.weight 8192
			transformer.word_embeddings.weight 65024 8192`,
	},
	"falcon-11B": {
		config: `{"model_type": "falcon", "architectures": ["FalconForCausalLM"], "alibi": false, "bias": false, "ffn_hidden_size": 16384,
			"hidden_size": 4096, "multi_query": true, "new_decoder_architecture": true, "num_attention_heads": 32, "num_hidden_layers": 60,
			"num_kv_heads": 8, "num_ln_in_parallel_attn": 1, "parallel_attn": true, "tie_word_embeddings": false, "vocab_size": 65024}`,
		tensors: `lm_head.weight 65024 4096
			transformer.h.{0-59}.input_layernorm.bias 4096
			transformer.h.{0-59}.input_layernorm.weight 4096
			transformer.h.{0-59}.mlp.dense_4h_to_h.weight 4096 16384
			transformer.h.{0-59}.mlp.dense_h_to_4h.weight 16384 4096
			transformer.h.{0-59}.self_attention.dense.weight 4096 4096
			transformer.h.{0-59}.self_attention.query_key_value.weight 6144 4096
			transformer.ln_f.bias 4096
			transformer.ln_f.weight 4096
			transformer.word_embeddings.weight 65024 4096`,
	},
	"starcoder2-3b": {
		config: `{"model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"], "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072,
			"intermediate_size": 12288, "mlp_type": "default", "norm_type": "layer_norm", "num_attention_heads": 24,
			"num_hidden_layers": 30, "num_key_value_heads": 2, "use_bias": true, "vocab_size": 49152}`,
		tensors: `model.embed_tokens.weight 49152 3072
			model.layers.{0-29}.input_layernorm.bias 3072
			model.layers.{0-29}.input_layernorm.weight 3072
			model.layers.{0-29}.mlp.c_fc.bias 12288
			model.layers.{0-29}.mlp.c_fc.weight 12288 3072
			model.layers.{0-29}.mlp.c_proj.bias 3072
			model.layers.{0-29}.mlp.c_proj.weight 3072 12288
			model.layers.{0-29}.post_attention_layernorm.bias 3072
			model.layers.{0-29}.post_attention_layernorm.weight 3072
			model.layers.{0-29}.self_attn.k_proj.bias 256
			model.layers.{0-29}.self_attn.k_proj.weight 256 3072
			model.layers.{0-29}.self_attn.o_proj.bias 3072
			model.layers.{0-29}.self_attn.o_proj.weight 3072 3072
			model.layers.{0-29}.self_attn.q_proj.bias 3072
			model.layers.{0-29}.self_attn.q_proj.weight 3072 3072
			model.layers.{0-29}.self_attn.v_proj.bias 256
			model.layers.{0-29}.self_attn.v_proj.weight 256 3072
			model.norm.bias 3072
			model.norm.weight 3072`,
	},
	"bert-base-uncased": {
		config: `{"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_act": "gelu", "hidden_size": 768, "intermediate_size": 3072,
			"max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522}`,
		tensors: bertLayers("bert", "gamma", "beta", 512, 2, 30522) + `
			bert.pooler.dense.bias 768
			bert.pooler.dense.weight 768 768
			cls.predictions.bias 30522
			cls.predictions.transform.LayerNorm.beta 768
			cls.predictions.transform.LayerNorm.gamma 768
			cls.predictions.transform.dense.bias 768
			cls.predictions.transform.dense.weight 768 768
			cls.seq_relationship.bias 2
			cls.seq_relationship.weight 2 768`,
	},
	"roberta-base": {
		config: `{"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "hidden_act": "gelu", "hidden_size": 768, "intermediate_size": 3072,
			"max_position_embeddings": 514, "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 1, "vocab_size": 50265}`,
		tensors: bertLayers("roberta", "weight", "bias", 514, 1, 50265) + `
			lm_head.bias 50265
			lm_head.dense.bias 768
			lm_head.dense.weight 768 768
			lm_head.layer_norm.bias 768
			lm_head.layer_norm.weight 768
			roberta.embeddings.position_ids 1 514
			roberta.pooler.dense.bias 768
			roberta.pooler.dense.weight 768 768`,
	},
	"vit-base-patch16-224": {
		config: `{"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_act": "gelu", "hidden_size": 768,
			"id2label": {"0": "tench", "1": "goldfish", "2": "great white shark"}, "image_size": 224, "intermediate_size": 3072,
			"num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true}`,
		tensors: `classifier.bias 3
			classifier.weight 3 768
			vit.embeddings.cls_token 1 1 768
			vit.embeddings.patch_embeddings.projection.bias 768
			vit.embeddings.patch_embeddings.projection.weight 768 3 16 16
			vit.embeddings.position_embeddings 1 197 768
			vit.encoder.layer.{0-11}.attention.attention.key.bias 768
			vit.encoder.layer.{0-11}.attention.attention.key.weight 768 768
			vit.encoder.layer.{0-11}.attention.attention.query.bias 768
			vit.encoder.layer.{0-11}.attention.attention.query.weight 768 768
			vit.encoder.layer.{0-11}.attention.attention.value.bias 768
			vit.encoder.layer.{0-11}.attention.attention.value.weight 768 768
			vit.encoder.layer.{0-11}.attention.output.dense.bias 768
			vit.encoder.layer.{0-11}.attention.output.dense.weight 768 768
			vit.encoder.layer.{0-11}.intermediate.dense.bias 3072
			vit.encoder.layer.{0-11}.intermediate.dense.weight 3072 768
			vit.encoder.layer.{0-11}.layernorm_after.bias 768
			vit.encoder.layer.{0-11}.layernorm_after.weight 768
			vit.encoder.layer.{0-11}.layernorm_before.bias 768
			vit.encoder.layer.{0-11}.layernorm_before.weight 768
			vit.encoder.layer.{0-11}.output.dense.bias 768
			vit.encoder.layer.{0-11}.output.dense.weight 768 3072
			vit.layernorm.bias 768
			vit.layernorm.weight 768`,
	},
	"whisper-tiny": {
		config: `{"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "activation_function": "gelu", "d_model": 384,
			"decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "decoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
			"encoder_layers": 4, "max_source_positions": 1500, "max_target_positions": 448, "num_hidden_layers": 4, "num_mel_bins": 80,
			"vocab_size": 51865}`,
		tensors: `model.encoder.conv1.bias 384
			model.encoder.conv1.weight 384 80 3
			model.encoder.conv2.bias 384
			model.encoder.conv2.weight 384 384 3
			model.encoder.embed_positions.weight 1500 384
			model.decoder.embed_positions.weight 448 384
			model.decoder.embed_tokens.weight 51865 384
			` + whisperLayers("encoder", "self_attn") + whisperLayers("decoder", "self_attn", "encoder_attn"),
	},
}

func optLayers(prefix string, layers, hidden, neurons int) string {
	at := fmt.Sprintf("%s.layers.{0-%d}.", prefix, layers-1)
	return each(at, []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"}, hidden, hidden) +
		each(at, []string{"fc1"}, neurons, hidden) + each(at, []string{"fc2"}, hidden, neurons) +
		each(at, []string{"self_attn_layer_norm", "final_layer_norm"}, hidden)
}

func bertLayers(prefix, weight, bias string, positions, segments, vocab int) string {
	at := prefix + ".encoder.layer.{0-11}."
	all := fmt.Sprintf("%[1]s.embeddings.position_embeddings.weight %[2]d 768\n%[1]s.embeddings.token_type_embeddings.weight %[3]d 768\n"+
		"%[1]s.embeddings.word_embeddings.weight %[4]d 768\n", prefix, positions, segments, vocab)
	for _, norm := range []string{prefix + ".embeddings", at + "attention.output", at + "output"} {
		all += fmt.Sprintf("%[1]s.LayerNorm.%[2]s 768\n%[1]s.LayerNorm.%[3]s 768\n", norm, weight, bias)
	}
	return all + each(at, []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"}, 768, 768) +
		each(at, []string{"intermediate.dense"}, 3072, 768) + each(at, []string{"output.dense"}, 768, 3072)
}

func whisperLayers(part string, attentions ...string) string {
	at := "model." + part + ".layers.{0-3}."
	all := each("model."+part+".", []string{"layer_norm"}, 384) + each(at, []string{"final_layer_norm"}, 384) +
		each(at, []string{"fc1"}, 1536, 384) + each(at, []string{"fc2"}, 384, 1536)
	for _, a := range attentions {
		all += each(at+a, []string{"_layer_norm"}, 384) + each(at+a, []string{".q_proj", ".v_proj", ".out_proj"}, 384, 384) +
			at + a + ".k_proj.weight 384 384\n"
	}
	return all
}

// each lists the weights and biases of modules.
func each(at string, modules []string, shape ...int) (all string) {
	for _, m := range modules {
		all += fmt.Sprintf("%[1]s.weight %[2]s\n%[1]s.bias %[3]d\n", at+m, strings.Trim(fmt.Sprint(shape), "[]"), shape[0])
	}
	return all
}

var numbers = regexp.MustCompile(`\{(\d+)-(\d+)\}`)

// readTensors reads names and shapes.
func readTensors(t *testing.T, tensors string) (infos []weights.Info) {
	lines := strings.Split(tensors, "\n")
	for len(lines) > 0 {
		line := strings.TrimSpace(lines[0])
		lines = lines[1:]
		if m := numbers.FindStringSubmatch(line); m != nil {
			from, _ := strconv.Atoi(m[1])
			to, _ := strconv.Atoi(m[2])
			for i := from; i <= to; i++ {
				lines = append(lines, strings.Replace(line, m[0], strconv.Itoa(i), 1))
			}
			continue
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		info := weights.Info{Name: words[0]}
		for _, w := range words[1:] {
			n, err := strconv.Atoi(w)
			if err != nil {
				t.Fatal(err)
			}
			info.Shape = append(info.Shape, n)
		}
		infos = append(infos, info)
	}
	return infos
}

func TestPublished(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	for name, p := range published {
		t.Run(name, func(t *testing.T) {
			f, err := Detect([]byte(p.config))
			if err != nil {
				t.Fatal(err)
			}
			l, err := f.Resolve([]byte(p.config), readTensors(t, p.tensors))
			if err != nil {
				t.Fatal(err)
			}
			var unclaimed, blocked []string
			for _, s := range l.UnclaimedGroups() {
				unclaimed = append(unclaimed, s.String())
			}
			for _, x := range l.Indices {
				if x.Blocked != "" && !slices.Contains(blocked, x.Kind) {
					blocked = append(blocked, x.Kind)
				}
			}
			if !slices.Equal(unclaimed, p.unclaimed) {
				t.Errorf("unclaimed are %q, want %q", unclaimed, p.unclaimed)
			}
			if !slices.Equal(blocked, p.blocked) {
				t.Errorf("blocked are %q, want %q", blocked, p.blocked)
			}
		})
	}
}
