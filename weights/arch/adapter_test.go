package arch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

const lora = `{"peft_type": "LORA"}`

// An adapter's tensors have the axes of their layer, in either storage order.
func TestAdaptersHaveTheAxesOfTheirLayers(t *testing.T) {
	const gpt2, llama = "base_model.model.transformer.h.1.", "base_model.model.model.layers.1."
	for _, c := range []struct {
		family, config string
		name           string
		shape          []int
		axes, kind     string
		rest           []weights.Info // other tensors that the adapter needs
	}{
		{"gpt2", gpt2Config, gpt2 + "attn.c_attn.lora_A.weight", []int{2, 6}, "[2 residual & -attn_norm]", "attn.c_attn.lora_A",
			[]weights.Info{{Name: gpt2 + "attn.c_attn.lora_B.weight", Shape: []int{18, 2}}}},
		{"gpt2", gpt2Config, gpt2 + "attn.c_attn.lora_B.weight", []int{18, 2}, "[head +qk | head -qk | head +v 2]", "attn.c_attn.lora_B",
			[]weights.Info{{Name: gpt2 + "attn.c_attn.lora_A.weight", Shape: []int{2, 6}}}},
		{"gpt2", gpt2Config, gpt2 + "attn.c_attn.lora_B.bias", []int{18}, "[head +qk | head -qk | head +v]", "attn.c_attn.lora_B.bias",
			[]weights.Info{{Name: gpt2 + "attn.c_attn.lora_A.weight", Shape: []int{2, 6}}, {Name: gpt2 + "attn.c_attn.lora_B.weight", Shape: []int{18, 2}}}},
		{"llama", llamaConfig, llama + "self_attn.q_proj.lora_B.weight", []int{24, 3}, "[kv group 2 +pair 3]", "self_attn.q_proj.lora_B",
			[]weights.Info{{Name: llama + "self_attn.q_proj.lora_A.weight", Shape: []int{3, 6}}}},
		{"llama", llamaConfig, llama + "mlp.down_proj.lora_A.weight", []int{3, 5}, "[3 -ffn]", "mlp.down_proj.lora_A",
			[]weights.Info{{Name: llama + "mlp.down_proj.lora_B.weight", Shape: []int{6, 3}}}},
		{"llama", llamaConfig, "base_model.model.model.embed_tokens.lora_embedding_A", []int{3, 7}, "[3 vocab]", "embed_tokens.lora_embedding_A",
			[]weights.Info{{Name: "base_model.model.model.embed_tokens.lora_embedding_B", Shape: []int{6, 3}}}},
		{"llama", llamaConfig, "base_model.model.model.embed_tokens.lora_embedding_B", []int{6, 3}, "[+residual 3]", "embed_tokens.lora_embedding_B",
			[]weights.Info{{Name: "base_model.model.model.embed_tokens.lora_embedding_A", Shape: []int{3, 7}}}},
		{"llama", llamaConfig, llama + "mlp.up_proj.bias", []int{5}, "[+ffn]", "mlp.up_proj.bias (adapter)", nil},
	} {
		f := find(t, Families(), c.family)
		_, l := synthetic(t, f, c.config)
		before := fmt.Sprint(len(l.Claims), l.Indices[0].Uses)
		a := l.Adapt([]byte(lora), append(c.rest, weights.Info{Name: c.name, Shape: c.shape}))
		claim := a.Claims[c.name]
		if claim == nil {
			t.Errorf("%s: %s", c.name, a.Adapter.Problem)
			continue
		}
		if got := fmt.Sprint(claim.Axes); got != c.axes || claim.Kind != c.kind || claim.Role != 0 {
			t.Errorf("%s: axes %s, %+v", c.name, got, claim)
		}
		for i, axis := range claim.Axes {
			for _, name := range axis.Indices() {
				uses := a.Index(name).Uses
				if last := uses[len(uses)-1]; last.Tensor != c.name || last.Axis != i {
					t.Errorf("%s: the uses of %s end with %v", c.name, name, last)
				}
			}
		}
		if after := fmt.Sprint(len(l.Claims), l.Indices[0].Uses); after != before || l.Adapter != nil {
			t.Errorf("%s: the layout of the base was changed", c.name)
		}
	}
}

// An adapter that is not supported blocks every index.
func TestAdaptersThatAreNotUnderstood(t *testing.T) {
	_, l := synthetic(t, find(t, Families(), "llama"), llamaConfig)
	a := l.Adapt([]byte(lora), []weights.Info{{Name: "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight", Shape: []int{3, 5}}, {Name: "x", Shape: []int{1}}})
	const problem = `tensor "x": is neither lora_A nor lora_B of a layer of the base model, nor a replacement for one of its tensors`
	if a.Adapter.Problem != problem || len(a.Adapter.Changes) > 0 || len(a.Claims) != len(l.Claims) {
		t.Errorf("%+v", a.Adapter)
	}
	for _, x := range a.Indices {
		if x.Blocked != "the LoRA adapter in the model's folder cannot be changed with the model: "+problem {
			t.Errorf("%s: %s", x.Name, x.Blocked)
		}
	}
	const down = "base_model.model.model.layers.0.mlp.down_proj.lora_"
	a = l.Adapt([]byte(lora), []weights.Info{{Name: down + "A.weight", Shape: []int{3, 5}}, {Name: down + "B.weight", Shape: []int{6, 2}}})
	if want := `has rank 2, but the other matrix for "model.layers.0.mlp.down_proj.weight" has rank 3`; !strings.Contains(a.Adapter.Problem, want) {
		t.Errorf("ranks that differ: %q", a.Adapter.Problem)
	}
	for _, c := range []struct{ lacks, has, base string }{
		{"lora_A.weight", "lora_B.weight", "layers.0.mlp.down_proj"},
		{"lora_B.weight", "lora_A.weight", "layers.0.mlp.down_proj"},
		{"lora_embedding_A", "lora_embedding_B", "embed_tokens"},
		{"lora_embedding_B", "lora_embedding_A", "embed_tokens"},
	} {
		module := "base_model.model.model." + c.base + "."
		shape := map[string][]int{"lora_A.weight": {3, 5}, "lora_B.weight": {6, 3}, "lora_embedding_A": {3, 7}, "lora_embedding_B": {6, 3}}[c.has]
		a = l.Adapt([]byte(lora), []weights.Info{{Name: module + c.has, Shape: shape}})
		if want := fmt.Sprintf("tensor %q: is missing, but %q needs it", module+c.lacks, module+c.has); a.Adapter.Problem != want {
			t.Errorf("%q, not %q", a.Adapter.Problem, want)
		}
	}
	for _, config := range []string{`[]`, `{"peft_type": `, `{}`, `{"peft_type": "LORA", "use_bdlora": {"nblocks": 2}}`, `{"peft_type": "LORA", "use_qalora": true}`} {
		if a := l.Adapt([]byte(config), nil); a.Adapter.Problem == "" {
			t.Errorf("%s is taken for a config", config)
		}
	}
}
