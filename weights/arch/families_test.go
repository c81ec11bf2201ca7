package arch

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

func TestFamilies(t *testing.T) {
	types := map[string]string{}
	for _, f := range Families() {
		if _, err := files.ReadFile("families/" + f.Name + ".json"); err != nil || !slices.Contains(f.ModelTypes, f.Name) {
			t.Errorf("%s: its file and one of its model_types have its name: %v", f.Name, err)
		}
		for _, m := range append(f.ModelTypes, f.Architectures...) {
			if types[m] != "" {
				t.Errorf("both %s and %s answer to %s", types[m], f.Name, m)
			}
			types[m] = f.Name
		}
		if len(f.Absent) == 0 {
			t.Errorf("%s says nothing of what does not hold", f.Name)
		}
		for _, x := range f.indices {
			if x.uses == nil {
				t.Errorf("%s: index %s has no uses", f.Name, x.Name)
			}
		}
	}
}

// Every family has a tiny config, and claims each tensor that it expects for the config once.
func TestTiny(t *testing.T) {
	tried := map[string]bool{}
	for name, config := range tiny(t) {
		f := familyOf(t, config)
		tried[f.Name] = true
		_, l := synthetic(t, f, string(config))
		for _, x := range l.Indices {
			if x.Blocked != "" || len(x.Uses) == 0 {
				t.Errorf("%s: %+v", name, x)
			}
		}
	}
	for _, f := range Families() {
		if !tried[f.Name] {
			t.Errorf("%s: no config in synth/configs", f.Name)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct{ config, family string }{
		{`{"model_type": "llama"}`, "llama"},
		{`{"model_type": "gpt2", "architectures": ["Mine"]}`, "gpt2"},
		{`{"architectures": ["GPT2LMHeadModel"]}`, "gpt2"},
		{`{"model_type": "my_llama", "architectures": ["LlamaForCausalLM"]}`, "llama"},
	} {
		f, err := Detect([]byte(c.config))
		if err != nil || f.Name != c.family {
			t.Errorf("%s: %v, %v", c.config, f, err)
		}
	}
}

func TestDetectUnknown(t *testing.T) {
	for config, unknown := range map[string]bool{
		`{"model_type": "mamba", "architectures": ["MambaForCausalLM"]}`: true,
		`{}`: true, `{"model_type": null}`: true,
		`{"model_type": 3}`: false, `{`: false, `[]`: false, `null`: false,
	} {
		if _, err := Detect([]byte(config)); err == nil || errors.Is(err, ErrUnknownFamily) != unknown {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestRealModels(t *testing.T) {
	for _, name := range []string{"llama-17m", "demo-0.8m"} {
		t.Run(name, func(t *testing.T) {
			config, infos := realModel(t, name)
			f, err := Detect(config)
			if err != nil {
				t.Fatal(err)
			}
			l, err := f.Resolve(config, infos)
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Claims) != len(infos) || len(l.Unclaimed) > 0 {
				t.Errorf("%d of %d tensors claimed, unclaimed %v", len(l.Claims), len(infos), l.Unclaimed)
			}
			for _, x := range l.Indices {
				if x.Blocked != "" {
					t.Errorf("%s: %s", x.Name, x.Blocked)
				}
			}
			expected, err := f.Expect(config)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := byName(infos), byName(expected); !reflect.DeepEqual(got, want) {
				t.Errorf("header has\n%v\nexpected\n%v", got, want)
			}
		})
	}
}

// byName returns tensors by name, without their places in the file.
func byName(infos []weights.Info) map[string]weights.Info {
	m := map[string]weights.Info{}
	for _, i := range infos {
		i.Begin, i.End = 0, 0
		m[i.Name] = i
	}
	return m
}

func TestLlamaLayout(t *testing.T) {
	_, l := synthetic(t, find(t, Families(), "llama"), llamaConfig)
	want := map[string]Index{
		"residual":            {Kind: "residual", Len: 6, Permute: true, Sign: true},
		"layers.1.ffn":        {Kind: "ffn", Len: 5, Permute: true, Sign: true, Scale: true},
		"layers.1.kv":         {Kind: "kv", Len: 2, Permute: true},
		"layers.1.kv.0.group": {Kind: "group", Len: 3, Permute: true},
		"layers.0.kv.1.v":     {Kind: "v", Len: 4, Permute: true, Sign: true, Scale: true, Cached: true},
		"layers.0.kv.1.pair":  {Kind: "pair", Len: 2, Sign: true, Scale: true, Cached: true},
		"layers.0.attn_norm":  {Kind: "attn_norm", Len: 6, Scale: true},
		"final_norm":          {Kind: "final_norm", Len: 6, Scale: true},
	}
	for name, w := range want {
		x := l.Index(name)
		if x == nil {
			t.Fatalf("no index %s", name)
		}
		w.Name, w.Uses, w.global = name, x.Uses, x.global
		if !reflect.DeepEqual(*x, w) {
			t.Errorf("%+v, want %+v", *x, w)
		}
	}
	ffn := []Use{
		{"model.layers.1.mlp.gate_proj.weight", 0, false}, {"model.layers.1.mlp.gate_proj.bias", 0, false},
		{"model.layers.1.mlp.up_proj.weight", 0, true}, {"model.layers.1.mlp.up_proj.bias", 0, true},
		{"model.layers.1.mlp.down_proj.weight", 1, true},
	}
	if got := l.Index("layers.1.ffn").Uses; !slices.Equal(got, ffn) {
		t.Errorf("uses of ffn: %v", got)
	}
	c := l.Claims["model.layers.1.self_attn.q_proj.weight"]
	if c.Kind != "self_attn.q_proj" || c.Layer != 1 || c.Role != Linear || c.Bias != "model.layers.1.self_attn.q_proj.bias" ||
		*c.Norm != (NormRef{RMSNorm, "model.layers.1.input_layernorm.weight", ""}) || c.Softmax {
		t.Errorf("claim %+v", c)
	}
	if c := l.Claims["lm_head.weight"]; !c.Softmax || c.Layer != -1 || c.Norm.Weight != "model.norm.weight" {
		t.Errorf("claim %+v", c)
	}
}

func TestGPT2Layout(t *testing.T) {
	f := find(t, Families(), "gpt2")
	infos, err := f.Expect([]byte(gpt2Config))
	if err != nil {
		t.Fatal(err)
	}
	// GPT-2's checkpoint on the Hugging Face Hub has no prefix, masks of any shape, and a copy of the embedding.
	for i := range infos {
		infos[i].Name = infos[i].Name[len("transformer."):]
	}
	infos = append(infos, weights.Info{Name: "h.0.attn.bias", Shape: []int{1, 1, 6, 6}},
		weights.Info{Name: "h.1.attn.masked_bias"}, weights.Info{Name: "lm_head.weight", Shape: []int{7, 6}})
	l, err := f.Resolve([]byte(gpt2Config), infos)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Unclaimed) > 0 || l.Index("residual").Blocked != "" {
		t.Errorf("unclaimed %v, residual %q", l.Unclaimed, l.Index("residual").Blocked)
	}
	if c := l.Claims["lm_head.weight"]; c.Softmax || c.Norm != nil {
		t.Errorf("a tied head: %+v", c)
	}
	c := l.Claims["h.1.attn.c_attn.weight"]
	if c.OutAxis != 1 || c.Bias != "h.1.attn.c_attn.bias" || *c.Norm != (NormRef{LayerNorm, "h.1.ln_1.weight", "h.1.ln_1.bias"}) {
		t.Errorf("claim %+v", c)
	}
	if x := l.Index("residual"); x.Sign || x.Scale || !x.Permute {
		t.Errorf("residual %+v", x)
	}
	if x := l.Index("final_norm"); x.Scale {
		t.Errorf("a tied model's final norm: %+v", x)
	}
	if c := l.Claims["h.0.attn.bias"]; c.Role != Buffer || len(c.Axes) != 4 || c.Axes[3].Len() != 6 || c.Axes[3].Indices() != nil {
		t.Errorf("buffer %+v", c)
	}
}

func TestHeadless(t *testing.T) {
	config := `{"architectures": ["LlamaModel"], "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 7,
		"intermediate_size": 5, "num_attention_heads": 2}`
	infos, l := synthetic(t, find(t, Families(), "llama"), config)
	if x := l.Index("residual"); x.Permute || x.Sign {
		t.Errorf("%+v", x)
	}
	if infos[len(infos)-1].Name != "model.norm.weight" || !l.Index("layers.0.ffn").Permute {
		t.Errorf("%v", infos)
	}
}

func TestExpect(t *testing.T) {
	infos, l := synthetic(t, mustParse(t, unusual), unusualConfig)
	var names []string
	for i, info := range infos {
		names = append(names, info.Name)
		if i > 0 && info.Begin != infos[i-1].End || info.Size() != int64(2*info.Len()) || info.DType != weights.BF16 {
			t.Errorf("%+v", info)
		}
	}
	want := []string{"m.embed.weight", "m.b.0.qkv.weight", "m.b.0.o.weight", "m.b.0.gate_up.weight", "m.b.0.down.weight",
		"m.b.1.qkv.weight", "m.b.1.o.weight", "m.b.1.x.0.up.weight", "m.b.1.x.0.down.weight", "m.b.1.x.1.up.weight"}
	if !slices.Equal(names[:len(want)], want) {
		t.Errorf("order %v", names)
	}
	if l.Claims["m.b.1.x.2.up.weight"].Kind != "x.up" || l.Index("layers.1.experts.2.expert_ffn") == nil {
		t.Error("experts are named otherwise")
	}
	if x := l.Index("layers.0.ffn"); !x.Sign || x.Scale || l.Index("layers.1.ffn") != nil {
		t.Errorf("ffn: %+v", x)
	}
}

func TestExpectDType(t *testing.T) {
	f := find(t, Families(), "gpt2")
	for config, want := range map[string]weights.DType{
		`{"torch_dtype": "float16", `: weights.F16, `{"dtype": "torch.float32", `: weights.F32, `{"dtype": null, `: weights.BF16,
	} {
		infos, err := f.Expect([]byte(config + gpt2Config[1:]))
		if err != nil || infos[0].DType != want {
			t.Errorf("%s: %v, %v", config, infos[0].DType, err)
		}
		if d, err := ConfigDType([]byte(config + gpt2Config[1:])); err != nil || d != want {
			t.Errorf("%s: %v, %v", config, d, err)
		}
	}
}

// A layout does not depend on the order of the headers.
func TestResolveOrder(t *testing.T) {
	f := find(t, Families(), "llama")
	infos, want := synthetic(t, f, llamaConfig)
	slices.Reverse(infos)
	got, err := f.Resolve([]byte(llamaConfig), infos)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Indices, want.Indices) {
		t.Error("another order of headers, other indices")
	}
}
