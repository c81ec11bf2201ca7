package arch

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lowtoggle/lowtoggle/weights"
)

// base is a family that other families name in "like".
const base = `{
	"family": "base", "model_types": ["base"], "prefixes": ["m."], "absent": [{"what": "much", "why": "Because."}],
	"flags": [{"name": "tied", "fields": ["tied"]}],
	"dims": [{"name": "hidden", "fields": ["hidden"]}, {"name": "neurons", "when": "tied", "value": "3"}, {"name": "neurons", "value": "5"}],
	"loops": [{"name": "layer", "count": "2"}],
	"indices": [{"name": "ffn", "per": ["layer"], "length": "neurons", "permute": "always", "uses": "2"}],
	"norms": [{"name": "n", "kind": "rmsnorm", "weight": "{prefix}n.weight"}],
	"tensors": [
		{"name": "{prefix}n.weight", "role": "norm", "axes": ["hidden"]},
		{"name": "{prefix}l.{layer}.up.weight", "role": "linear", "axes": ["ffn", "hidden"]},
		{"name": "{prefix}l.{layer}.down.weight", "role": "linear", "axes": ["hidden", "ffn"]},
		{"name": "{prefix}head.weight", "role": "linear", "axes": ["7", "hidden"]}]}`

// catalogue is base and families like it, by name.
func catalogue(more map[string]string) fstest.MapFS {
	all := fstest.MapFS{"families/base.json": {Data: []byte(base)}}
	for name, text := range more {
		all["families/"+name+".json"] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// expectedNames lists the tensors of a new folder.
func expectedNames(t *testing.T, f *Family) (names []string) {
	t.Helper()
	infos, err := f.Expect([]byte(`{"hidden": 4}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}

func TestLike(t *testing.T) {
	bases := catalogue(map[string]string{"middle": `{"family": "middle", "like": "base", "model_types": ["middle"],
		"prefixes": ["x."], "tensors": [{"name": "{prefix}head.weight", "remove": true}]}`})
	for _, c := range []struct {
		name, lists string
		want        []string
	}{
		{"as it is", ``, []string{"m.n.weight", "m.l.0.up.weight", "m.l.0.down.weight", "m.l.1.up.weight", "m.l.1.down.weight", "m.head.weight"}},
		{"prefix", `, "prefixes": ["y."]`, []string{"y.n.weight", "y.l.0.up.weight", "y.l.0.down.weight", "y.l.1.up.weight", "y.l.1.down.weight", "y.head.weight"}},
		{"new ones come last", `, "loops": [{"name": "layer", "count": "1"}], "tensors": [{"name": "a", "role": "bias", "axes": ["3"]}, {"name": "b", "role": "buffer"}]`,
			[]string{"m.n.weight", "m.l.0.up.weight", "m.l.0.down.weight", "m.head.weight", "a", "b"}},
		{"or behind another, in their order", `, "loops": [{"name": "layer", "count": "1"}], "tensors": [
			{"name": "a", "role": "bias", "axes": ["3"], "after": "{prefix}n.weight"}, {"name": "c", "role": "bias", "axes": ["3"], "after": "a"},
			{"name": "b", "role": "bias", "axes": ["3"], "after": "{prefix}n.weight"}]`,
			[]string{"m.n.weight", "a", "b", "c", "m.l.0.up.weight", "m.l.0.down.weight", "m.head.weight"}},
		{"replaced in their place, or moved", `, "loops": [{"name": "layer", "count": "1"}], "tensors": [
			{"name": "{prefix}head.weight", "role": "linear", "axes": ["8", "hidden"], "after": "{prefix}n.weight"},
			{"name": "{prefix}l.{layer}.down.weight", "role": "linear", "axes": ["hidden", "ffn", "1"]}]`,
			[]string{"m.n.weight", "m.head.weight", "m.l.0.up.weight", "m.l.0.down.weight"}},
		{"removed", `, "loops": [{"name": "layer", "count": "1"}], "tensors": [{"name": "{prefix}head.weight", "remove": true}]`,
			[]string{"m.n.weight", "m.l.0.up.weight", "m.l.0.down.weight"}},
	} {
		f, err := parse([]byte(`{"family": "mine", "like": "base", "model_types": ["mine"]`+c.lists+`}`), bases)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := expectedNames(t, f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
		if f.Absent != nil || !slices.Equal(f.ModelTypes, []string{"mine"}) || f.Doc != "" {
			t.Errorf("%s: took over what is the base's own: %+v", c.name, f)
		}
	}
	f, err := parse([]byte(`{"family": "mine", "like": "middle", "model_types": ["mine"], "loops": [{"name": "layer", "count": "1"}]}`), bases)
	if err != nil {
		t.Fatal(err)
	}
	if got := expectedNames(t, f); !slices.Equal(got, []string{"x.n.weight", "x.l.0.up.weight", "x.l.0.down.weight"}) {
		t.Errorf("like one that is like another: %v", got)
	}
}

// An entry replaces all entries of the same name in the base.
func TestLikeReplacesConditions(t *testing.T) {
	f, err := parse([]byte(`{"family": "mine", "like": "base", "model_types": ["mine"], "dims": [{"name": "neurons", "value": "9"}]}`), catalogue(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []string{`{"hidden": 4}`, `{"hidden": 4, "tied": true}`} {
		infos, err := f.Expect([]byte(config))
		if err != nil || infos[1].Shape[0] != 9 {
			t.Errorf("%s: %v, %v", config, infos, err)
		}
	}
}

func TestLikeErrors(t *testing.T) {
	circle := catalogue(map[string]string{
		"a": `{"family": "a", "like": "b"}`, "b": `{"family": "b", "like": "a"}`, "self": `{"family": "self", "like": "self"}`,
		"broken": `{"family": "broken", "x": 1}`,
	})
	for _, c := range []struct{ text, want string }{
		{`{"family": "mine", "like": "a"}`, `family "b": like is circular: a, b, a`},
		{`{"family": "self", "like": "self"}`, `family "self": like is circular: self, self`},
		{`{"family": "mine", "like": "nobody"}`, `family "mine": like: there is no embedded family "nobody": run lowtoggle families to list the families`},
		{`{"family": "mine", "like": "../base"}`, `there is no embedded family "../base"`},
		{`{"family": "mine", "like": "broken"}`, `family "mine": like "broken": unknown field "x"`},
		{`{"family": "mine", "like": "base", "tensors": [{"name": "x", "remove": true}]}`, `family "mine": tensors: "x" cannot be removed: the base has no entry of this name`},
		{`{"family": "mine", "like": "base", "dims": [{"name": "neurons", "value": "1"}, {"name": "neurons", "remove": true}]}`, `dims: "neurons" cannot be removed: the base has no entry of this name, or this list has two`},
		{`{"family": "mine", "like": "base", "tensors": [{"name": "x", "after": "y"}]}`, `tensors: "x" cannot come after "y": neither the base nor an earlier entry has this name`},
		{`{"family": "mine", "flags": [{"name": "x", "remove": true}]}`, `family "mine": flags[0] "x": "remove" and "after" need "like"`},
		{`{"family": "mine", "like": "base", "loops": [{"name": "layer", "remove": true}]}`, `name "{prefix}l.{layer}.up.weight": loops has no entry named "layer"`},
	} {
		if _, err := parse([]byte(c.text), circle); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
}

// A family and its complete file ask for the same tensors.
func TestComplete(t *testing.T) {
	for _, name := range []string{"llama", "gpt2"} {
		text := `{"family": "mine", "like": "` + name + `", "model_types": ["mine"], "tensors": [
			{"name": "{prefix}more.weight", "role": "linear", "axes": ["vocab", "vocab"], "after": "{root}lm_head.weight"}]}`
		whole, err := Complete([]byte(text))
		if err != nil || strings.Contains(string(whole), `"like"`) {
			t.Fatalf("%s: %v", whole, err)
		}
		config := map[string]string{"llama": llamaConfig, "gpt2": gpt2Config}[name]
		a, _ := synthetic(t, mustParse(t, text), config)
		b, _ := synthetic(t, mustParse(t, string(whole)), config)
		if !slices.EqualFunc(a, b, func(x, y weights.Info) bool { return x.Name == y.Name && slices.Equal(x.Shape, y.Shape) }) {
			t.Errorf("%v\n%v", a, b)
		}
	}
}
