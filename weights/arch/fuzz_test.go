package arch

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
)

// What Parse accepts never fails to be used; what a family expects, it resolves.
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
	infos := map[string][]weights.Info{}
	for family, config := range map[string]string{"gpt2": gpt2Config, "llama": llamaConfig} {
		infos[family], _ = synthetic(f, find(f, Families(), family), config)
	}
	f.Fuzz(func(t *testing.T, config []byte, name string, size int) {
		if fam, err := Detect(config); err == nil {
			checkExpected(t, fam, config)
		}
		_ = CustomCode(config)
		for family, infos := range infos {
			extra := weights.Info{Name: name, Shape: []int{size}}
			find(t, Families(), family).Resolve(config, append(slices.Clone(infos), extra))
		}
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
