package arch

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

func TestBlocked(t *testing.T) {
	f := find(t, Families(), "llama")
	infos, clean := synthetic(t, f, llamaConfig)
	var all []string
	for _, x := range clean.Indices {
		all = append(all, x.Name)
	}
	layer0 := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return len(n) < 8 || n[:8] != "layers.0" })
	for _, c := range []struct {
		name    string
		shape   []int
		blocked []string
		reason  string // of the first
	}{
		{"model.layers.1.mlp.up_proj.weight_scale_inv", []int{1, 1}, []string{"layers.1.ffn", "layers.1.mlp_norm", "residual"},
			`tensor "model.layers.1.mlp.up_proj.weight_scale_inv" is not in the catalogue and belongs to the same module as "model.layers.1.mlp.up_proj.weight"`},
		{"model.layers.1.mlp.down_proj.weight.absmax", []int{9}, []string{"layers.1.ffn", "residual"},
			`tensor "model.layers.1.mlp.down_proj.weight.absmax" is not in the catalogue and belongs to the same module as "model.layers.1.mlp.down_proj.weight"`},
		{"model.layers.0.mlp.gate_proj.lora_A.weight", []int{1, 9}, []string{"layers.0.ffn", "layers.0.mlp_norm", "residual"},
			`tensor "model.layers.0.mlp.gate_proj.lora_A.weight" is not in the catalogue and belongs to the same module as "model.layers.0.mlp.gate_proj.weight"`},
		{"model.layers.0.mlp.expert.weight", []int{5}, []string{"layers.0.ffn", "layers.0.mlp_norm"},
			`tensor "model.layers.0.mlp.expert.weight" is not in the catalogue and belongs to the same block as "model.layers.0.mlp.gate_proj.weight"`},
		{"model.layers.0.self_attn.q_norm.weight", []int{4}, slices.DeleteFunc(slices.Clone(layer0), func(n string) bool { return n == "layers.0.ffn" || n == "layers.0.mlp_norm" }),
			`tensor "model.layers.0.self_attn.q_norm.weight" is not in the catalogue and belongs to the same block as "model.layers.0.self_attn.q_proj.weight"`},
		{"model.layers.0.adapter.weight", []int{9}, []string{"layers.0.attn_norm", "layers.0.mlp_norm"},
			`tensor "model.layers.0.adapter.weight" is not in the catalogue and belongs to the same block as "model.layers.0.input_layernorm.weight"`},
		{"vision.projector.weight", []int{6, 99}, []string{"final_norm", "residual"},
			`tensor "vision.projector.weight" is not in the catalogue and has a dimension of 6, the index's length`},
		{"vision.tower.weight", []int{99}, nil, ""},
		{"model.rotary_emb.inv_freq", []int{6}, nil, ""},
		{"model.layers.1.self_attn.rotary_emb.inv_freq", []int{6}, nil, ""},
	} {
		l, err := f.Resolve([]byte(llamaConfig), append(slices.Clone(infos), weights.Info{Name: c.name, Shape: c.shape}))
		if err != nil {
			t.Fatal(err)
		}
		var blocked []string
		for _, x := range l.Indices {
			if x.Blocked != "" {
				blocked = append(blocked, x.Name)
			}
		}
		slices.Sort(blocked)
		slices.Sort(c.blocked)
		if !slices.Equal(blocked, c.blocked) {
			t.Errorf("%s blocks %v, not %v", c.name, blocked, c.blocked)
		} else if len(blocked) > 0 && l.Index(blocked[0]).Blocked != c.reason {
			t.Errorf("%s: %s", blocked[0], l.Index(blocked[0]).Blocked)
		}
		if l.Claims[c.name] == nil && !slices.Equal(l.Unclaimed, []string{c.name}) {
			t.Errorf("unclaimed %v", l.Unclaimed)
		}
	}
}
