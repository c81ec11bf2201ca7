package arch

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// model under test: a family's text, a config, and the function that its symmetries must keep.
type subject struct {
	family, config string
	logits         func(checkpoint, map[string]int) []num
}

func subjects() map[string]subject {
	with := func(config, more string) string { return strings.TrimSuffix(config, "}") + more + "}" }
	return map[string]subject{
		"llama":       {"llama", llamaConfig, checkpoint.llama},
		"llama tied":  {"llama", with(llamaConfig, `, "tie_word_embeddings": true`), checkpoint.llama},
		"llama plain": {"llama", strings.ReplaceAll(llamaConfig, `"num_key_value_heads": 2`, `"num_key_value_heads": 6`), checkpoint.llama},
		"gpt2":        {"gpt2", gpt2Config, checkpoint.gpt2},
		"gpt2 untied": {"gpt2", with(gpt2Config, `, "tie_word_embeddings": false`), checkpoint.gpt2},
	}
}

// kept draws weights and a change that the family allows, and reports whether the logits stayed.
func (s subject) kept(t *rapid.T, f *Family) bool {
	infos, err := f.Expect([]byte(s.config))
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.Resolve([]byte(s.config), infos)
	if err != nil {
		t.Fatal(err)
	}
	before := random(t, infos)
	after := before.transform(l, drawChange(t, l))
	return slices.Equal(s.logits(before, l.Dims), s.logits(after, l.Dims))
}

func TestSymmetriesKeepTheFunction(t *testing.T) {
	for name, s := range subjects() {
		f := mustParse(t, source(t, s.family))
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			if !s.kept(t, f) {
				t.Fatal("the logits changed")
			}
		}))
	}
}

// wrong are single slips in the embedded families. Every one reads well, and the check of the
// function must find it.
var wrong = []struct{ subject, name, old, new string }{
	{"llama", "gate scaled", `"axes": ["ffn", "-residual & -mlp_norm"]`, `"axes": ["+ffn", "-residual & -mlp_norm"]`},
	{"llama", "down bias unsigned", `mlp.down_proj.bias", "role": "bias", "axes": ["+residual"]`, `mlp.down_proj.bias", "role": "bias", "axes": ["residual"]`},
	{"llama", "down unsigned", `["+residual", "-ffn"]`, `["residual", "-ffn"]`},
	{"llama", "up bias left behind", `up_proj.bias", "role": "bias", "axes": ["+ffn"]`, `up_proj.bias", "role": "bias", "axes": ["neurons"]`},
	{"llama", "q pairs interleaved", `["kv group 2 +pair", `, `["kv group +pair 2", `},
	{"llama", "q without groups", `["kv group 2 +pair", `, `["kv group_size 2 +pair", `},
	{"llama", "o without groups", `["+residual", "kv group -v"]`, `["+residual", "kv group_size -v"]`},
	{"llama", "pairs permuted", `"length": "pairs", `, `"length": "pairs", "permute": "always", `},
	{"llama", "v bias unscaled", `v_proj.bias", "role": "bias", "axes": ["kv +v"]`, `v_proj.bias", "role": "bias", "axes": ["kv v"]`},
	{"llama", "k without the norm", `["kv 2 -pair", "-residual & -attn_norm"]`, `["kv 2 -pair", "-residual"]`},
	{"llama", "signed norm", `["residual & +mlp_norm"]`, `["+residual & +mlp_norm"]`},
	{"llama", "residual scaled", `"sign": "!headless",`, `"sign": "!headless", "scale": "always",`},
	{"llama tied", "final norm though tied", `"scale": "!tied !headless"`, `"scale": "always"`},
	{"gpt2", "qkv per head", `"head +qk | head -qk | head +v"`, `"head (+qk | -qk | +v)"`},
	{"gpt2", "positions left behind", `["positions", "residual"]`, `["positions", "hidden"]`},
	{"gpt2", "norm bias unscaled", `ln_1.bias", "role": "norm", "axes": ["residual & +attn_norm"]`, `ln_1.bias", "role": "norm", "axes": ["residual"]`},
	{"gpt2", "neurons without their bias", `"axes": ["ffn"]`, `"axes": ["neurons"]`},
	{"gpt2", "final norm though tied", `"scale": "!tied !headless"`, `"scale": "always"`},
}

func TestWrongFamiliesAreFound(t *testing.T) {
	for _, w := range wrong {
		t.Run(w.subject+"/"+w.name, func(t *testing.T) {
			s := subjects()[w.subject]
			text := source(t, s.family)
			changed := strings.ReplaceAll(text, w.old, w.new)
			if changed == text {
				t.Fatal("nothing replaced")
			}
			f := mustParse(t, changed)
			if _, err := f.Expect([]byte(s.config)); err != nil {
				return // the uses do not add up
			}
			found := false
			rapid.Check(t, func(t *rapid.T) { found = found || !s.kept(t, f) })
			if !found {
				t.Error("the logits stayed")
			}
		})
	}
}
