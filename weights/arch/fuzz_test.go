package arch

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// A family that Parse accepts can be used, and resolves the tensors that it expects.
func FuzzParse(f *testing.F) {
	for _, config := range tiny(f) {
		f.Add([]byte(source(f, familyOf(f, config).Name)), config)
	}
	f.Add([]byte(unusual), []byte(unusualConfig))
	f.Add([]byte(reading), []byte(`{"size": 8, "share": 0.5}`))
	f.Add([]byte(twoSpellings), []byte(`{"hidden": 4}`))
	f.Fuzz(func(t *testing.T, family, config []byte) {
		if fam, err := Parse(family); err == nil {
			checkExpected(t, fam, config)
		}
	})
}

func FuzzResolve(f *testing.F) {
	for _, config := range tiny(f) {
		f.Add(config, "lm_head.weight", 7)
	}
	f.Add([]byte(llamaConfig), "model.layers.0.mlp.up_proj.weight_scale", 6)
	f.Add([]byte(gpt2Config), "lm_head.weight", 7)
	f.Add([]byte(`{"model_type": "llama", "hidden_size": 2147483648}`), "model.layers.99999999999999999999.x", -1)
	f.Add([]byte(llamaConfig), "lm_head.weight", 8)
	known := [...]struct {
		family *Family
		infos  []weights.Info
	}{{family: find(f, Families(), "gpt2")}, {family: find(f, Families(), "llama")}}
	for i, config := range []string{gpt2Config, llamaConfig} {
		known[i].infos, _ = synthetic(f, known[i].family, config)
	}
	f.Fuzz(func(t *testing.T, config []byte, name string, size int) {
		if fam, err := Detect(config); err == nil {
			checkExpected(t, fam, config)
		}
		_ = CustomCode(config)
		k := &known[size&1] // one of the two, as both take twice the time
		k.family.Resolve(config, append(slices.Clone(k.infos), weights.Info{Name: name, Shape: []int{size}}))
	})
}

func checkExpected(t *testing.T, f *Family, config []byte) {
	infos, err := f.Expect(config)
	if err != nil {
		return
	}
	l, err := f.Resolve(config, infos)
	if err != nil {
		t.Fatalf("of what the family expects: %v", err)
	}
	for _, info := range infos {
		c := l.Claims[info.Name]
		if c == nil {
			t.Fatalf("%s is expected, but not claimed", info.Name)
		}
		for i, a := range c.Axes {
			if a.Len() != info.Shape[i] {
				t.Fatalf("%s: axis %d counts %d of %v", info.Name, i, a.Len(), info.Shape)
			}
		}
	}
}
