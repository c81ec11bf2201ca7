package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// The names of a language model in a multimodal model have a prefix, and its head has another prefix.
func TestRoot(t *testing.T) {
	f := find(t, Families(), "llama")
	config := `{"model_type": "llava", "text_config": ` + llamaConfig + `}`
	infos, err := f.Expect([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ prefix, head string }{
		{"model.", "lm_head.weight"}, {"language_model.model.", "language_model.lm_head.weight"},
		{"model.language_model.", "lm_head.weight"}, {"model.text_model.", "lm_head.weight"},
	} {
		theirs := slices.Clone(infos)
		for i := range theirs {
			if rest, ok := strings.CutPrefix(theirs[i].Name, "model."); ok {
				theirs[i].Name = c.prefix + rest
			} else {
				theirs[i].Name = c.head
			}
		}
		theirs = append(theirs, weights.Info{Name: "vision_tower.patch.weight", Shape: []int{99, 98}})
		l, err := f.Resolve([]byte(config), theirs)
		if err != nil {
			t.Errorf("%s: %v", c.prefix, err)
			continue
		}
		if fmt.Sprint(l.Unclaimed) != "[vision_tower.patch.weight]" || l.Claims[c.head].Norm.Weight != c.prefix+"norm.weight" {
			t.Errorf("%s: unclaimed %v, head %+v", c.prefix, l.Unclaimed, l.Claims[c.head])
		}
		if kind := l.Claims[c.prefix+"layers.0.mlp.up_proj.weight"].Kind; kind != "mlp.up_proj" {
			t.Errorf("%s: kind %s", c.prefix, kind)
		}
	}
}

// twoSpellings is a family whose norms have two spellings.
const twoSpellings = `{"family": "two", "model_types": ["two"],
	"prefixes": [{"prefix": "m.", "gamma": "weight"}, {"prefix": "m.", "gamma": "gamma"}],
	"dims": [{"name": "hidden", "fields": ["hidden"]}], "loops": [{"name": "layer", "count": "2"}],
	"norms": [{"name": "n", "kind": "layernorm", "weight": "{prefix}l.{layer}.norm.{gamma}"}],
	"tensors": [
		{"name": "{prefix}l.{layer}.norm.{gamma}", "role": "norm", "axes": ["hidden"]},
		{"name": "{prefix}l.{layer}.w.weight", "role": "linear", "axes": ["3", "hidden"], "norm": "n"}]}`

func TestSpellings(t *testing.T) {
	f := mustParse(t, twoSpellings)
	config := []byte(`{"hidden": 4}`)
	infos, err := f.Expect(config)
	if err != nil || infos[0].Name != "m.l.0.norm.weight" {
		t.Fatalf("%v, %v", infos, err)
	}
	for _, spelling := range []string{"weight", "gamma"} {
		for i := range infos {
			if strings.Contains(infos[i].Name, ".norm.") {
				infos[i].Name = parent(infos[i].Name) + "." + spelling
			}
		}
		l, err := f.Resolve(config, infos)
		if err != nil {
			t.Fatal(err)
		}
		c := l.Claims["m.l.1.norm."+spelling]
		if c == nil || c.Kind != "norm" || c.NormKind != LayerNorm || l.Claims["m.l.1.w.weight"].Norm.Weight != c.Name {
			t.Errorf("%s: %+v", spelling, c)
		}
	}
	infos[0].Name = "m.l.0.norm.beta"
	if _, err := f.Resolve(config, infos); err == nil || !strings.Contains(err.Error(), `tensor "m.l.0.norm.gamma": is missing`) {
		t.Error(err)
	}
}

func TestPrefixErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`{"prefix": "m.", "gamma": "gamma"}`, `"m."`, `prefixes[1]: has no value for {gamma}, but prefixes[0] has one: give every entry the same variables`},
		{`"gamma": "gamma"`, `"gamma": "a.b"`, `prefixes[1]: {gamma} is "a.b", but must be one part of a name: not empty, and without dots and braces`},
		{`"gamma": "gamma"`, `"gamma": 3`, `family file`},
		{`"gamma": "weight"`, `"gamma": "weight", "layer": "l"`, `loops[0] "layer": the name is already used in prefixes`},
		{`{layer}.norm.{gamma}`, `{layer}.norm.{beta}`, `loops has no entry named "beta"`},
		{`{prefix}l.{layer}.w.weight`, `{root}{prefix}l.{layer}.w.weight`, `a variable must stand alone between dots`},
		{`{prefix}l.{layer}.w.weight`, `{root}`, `name "{root}": empty`},
	} {
		changed := strings.ReplaceAll(twoSpellings, c.old, c.new)
		if changed == twoSpellings {
			t.Fatalf("%s: nothing replaced", c.old)
		}
		if _, err := Parse([]byte(changed)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.new, err, c.want)
		}
	}
}

// Layers beyond the loop are an error. If the loop has "beyond", they are unclaimed and block the indices that they may
// share.
func TestBeyond(t *testing.T) {
	text := source(t, "llama")
	f := mustParse(t, strings.Replace(text, `{"name": "layer", "count": "layers"}`, `{"name": "layer", "count": "layers", "beyond": true}`, 1))
	infos, _ := synthetic(t, f, llamaConfig)
	for name, shape := range map[string][]int{"model.layers.2.mlp.down_proj.weight": {6, 5}, "model.layers.7.eh_proj.weight": {6, 12}} {
		l, err := f.Resolve([]byte(llamaConfig), append(slices.Clone(infos), weights.Info{Name: name, Shape: shape}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if fmt.Sprint(l.Unclaimed) != "["+name+"]" || l.Index("residual").Blocked == "" || l.Index("layers.1.ffn").Blocked != "" {
			t.Errorf("%s: unclaimed %v, residual %q, ffn %q", name, l.Unclaimed, l.Index("residual").Blocked, l.Index("layers.1.ffn").Blocked)
		}
	}
}

// Many folders on the Hugging Face Hub spell BERT's norms this way.
func TestBertGamma(t *testing.T) {
	config := tiny(t)["bert-tiny.json"]
	f := familyOf(t, config)
	infos, err := f.Expect(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range infos {
		infos[i].Name = strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta").Replace(infos[i].Name)
	}
	l, err := f.Resolve(config, infos)
	if err != nil || len(l.Unclaimed) > 0 {
		t.Fatalf("%v, unclaimed %v", err, l.Unclaimed)
	}
	if c := l.Claims["bert.embeddings.LayerNorm.gamma"]; c == nil || c.Kind != "embeddings.LayerNorm" {
		t.Errorf("%+v", c)
	}
}
