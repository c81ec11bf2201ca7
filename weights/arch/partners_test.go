package arch

import (
	"strings"
	"testing"
)

// Slips between a linear layer and its bias, a norm's weight and its bias, a norm and its readers.
func TestPartners(t *testing.T) {
	for _, c := range []struct{ family, old, new, want string }{
		{"llama", `up_proj.bias", "role": "bias", "axes": ["+ffn"]`, `up_proj.bias", "role": "bias", "axes": ["ffn"]`,
			`bias "{prefix}layers.{layer}.mlp.up_proj.bias": its axis is "ffn", but the outputs of "{prefix}layers.{layer}.mlp.up_proj.weight" are "+ffn": write the same`},
		{"gpt2", `c_attn.bias", "role": "bias", "axes": ["head +qk | head -qk | head +v"]`, `c_attn.bias", "role": "bias", "axes": ["head (+qk | -qk | +v)"]`,
			`c_attn.bias": its axis is "head (+qk | -qk | +v)", but the outputs`},
		{"gpt2", `ln_1.bias", "role": "norm", "axes": ["residual & +attn_norm"]`, `ln_1.bias", "role": "norm", "axes": ["residual & -attn_norm"]`,
			`norm bias "{prefix}h.{layer}.ln_1.bias": its axis is "residual & -attn_norm", but the weight's is "residual & +attn_norm": write the same`},
		{"llama", `["kv 2 -pair", "-residual & -attn_norm"]`, `["kv 2 -pair", "-residual & +attn_norm"]`,
			`tensor "{prefix}layers.{layer}.self_attn.k_proj.weight": no axis of its inputs goes with "residual & +attn_norm", the axis of its norm's weight "{prefix}layers.{layer}.input_layernorm.weight"`},
		{"llama", `["kv 2 -pair", "-residual & -attn_norm"]`, `["kv 2 -pair", "-residual & mlp_norm"]`, `no axis of its inputs goes with`},
		{"llama", `["residual & +mlp_norm"]`, `["+residual & +mlp_norm"]`, ``}, // a sign on the norm's weight and its readers: not this check's business
		{"llama", `["residual & +mlp_norm"]`, `["-residual & +mlp_norm"]`, `mlp.gate_proj.weight": no axis of its inputs goes with "-residual & +mlp_norm"`},
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
