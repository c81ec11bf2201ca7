package forward

import "github.com/lowtoggle/lowtoggle/weights/arch"

// family is the arithmetic of an architecture: what its modules do. It names them as arch does
// (arch.Claim.Kind), which knows their tensors.
type family struct {
	embedding string // its rows are looked up by token
	positions string // its rows are looked up by position; empty: rotary positions, halves apart
	norm      arch.NormKind
	attention half
	ffn       half
	final     string // norm before the head
	head      string

	epsilon    field // added to a norm's mean square
	activation field
	tied       field   // the head is the embedding
	must       []field // other values than these are not implemented
}

// half is one residual step of a block: h += out(mix(in(norm(h)))).
type half struct {
	norm string
	// in are the layers that read the norm. Attention: q, k and v, or one that has all three one
	// after the other. FFN: gate and up, or one without a gate.
	in  []string
	out string
}

// field is a field of config.json and its default.
type field struct {
	name  string
	value any
}

// families has an entry for every family of the catalogue that can be computed.
var families = map[string]family{
	"llama": {
		embedding: "embed_tokens",
		norm:      arch.RMSNorm,
		attention: half{
			norm: "input_layernorm",
			in:   []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
			out:  "self_attn.o_proj",
		},
		ffn: half{
			norm: "post_attention_layernorm",
			in:   []string{"mlp.gate_proj", "mlp.up_proj"},
			out:  "mlp.down_proj",
		},
		final:      "norm",
		head:       "lm_head",
		epsilon:    field{"rms_norm_eps", 1e-6},
		activation: field{"hidden_act", "silu"},
		tied:       field{"tie_word_embeddings", false},
	},
	"gpt2": {
		embedding:  "wte",
		positions:  "wpe",
		norm:       arch.LayerNorm,
		attention:  half{norm: "ln_1", in: []string{"attn.c_attn"}, out: "attn.c_proj"},
		ffn:        half{norm: "ln_2", in: []string{"mlp.c_fc"}, out: "mlp.c_proj"},
		final:      "ln_f",
		head:       "lm_head",
		epsilon:    field{"layer_norm_epsilon", 1e-5},
		activation: field{"activation_function", "gelu_new"},
		tied:       field{"tie_word_embeddings", true},
		must: []field{
			{"scale_attn_weights", true},
			{"scale_attn_by_inverse_layer_idx", false},
			{"add_cross_attention", false},
		},
	},
}
