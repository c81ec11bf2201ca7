package arch

import (
	"strings"
	"testing"
)

// Parts of an axis without positions in a model have no effect.
func TestNoPositions(t *testing.T) {
	text := strings.ReplaceAll(unusual, `{"name": "others", "value": "3"}`, `{"name": "others", "fields": ["others"], "min": 0}`)
	f := mustParse(t, text)
	for config, want := range map[string]string{
		`{"hidden": 4, "layers": 2, "dense": 1, "others": 1}`: "kv (group (2 +pair | +rest) | 2 -pair | -rest | +v)",
		`{"hidden": 4, "layers": 2, "dense": 1, "others": 0}`: "kv (group 2 +pair | 2 -pair | +v)",
	} {
		_, l := synthetic(t, f, config)
		axis := l.Claims["m.b.0.qkv.weight"].Axes[0]
		if axis.String() != want || (l.Index("layers.0.kv.0.rest") == nil) != strings.Contains(config, `"others": 0`) {
			t.Errorf("%s: %s", config, axis)
		}
		size := l.Dims["head_dim"]
		if n := axis.Len(); n != 2*5*size {
			t.Errorf("%s: %d positions", config, n)
		}
		// The value channels of a KV head come last in its block.
		if at := axis.Positions("layers.0.kv.1.v"); at[0][0] != 5*size+4*size {
			t.Errorf("%s: v of head 1 at %v", config, at)
		}
	}
	f = mustParse(t, strings.ReplaceAll(text, `["kv (group (2 +pair | +rest) | 2 -pair | -rest | +v)", "-residual"]`, `["kv (2 +pair | -pair | +v)", "kv (+rest | -rest)"]`))
	_, err := f.Expect([]byte(`{"hidden": 4, "layers": 2, "dense": 1, "others": 0}`))
	if err == nil || !strings.Contains(err.Error(), `axis "kv (+rest | -rest)": its length must be at least 1`) {
		t.Error(err)
	}
}

// Entries of one name divide a loop among themselves.
func TestRanges(t *testing.T) {
	split := func(first, second string) *Family {
		return mustParse(t, strings.Replace(unusual, `{"name": "{prefix}b.{layer}.o.weight", "role": "linear", "axes": ["+residual", "kv group -v"]}`,
			`{"name": "{prefix}b.{layer}.o.weight", "role": "linear", "axes": ["+residual", "kv group -v"], `+first+`},
			{"name": "{prefix}b.{layer}.o.weight", "role": "linear", "axes": ["+residual", "kv group -v", "1"], `+second+`}`, 1))
	}
	infos, l := synthetic(t, split(`"to": "dense"`, `"from": "dense"`), unusualConfig)
	if len(l.Claims["m.b.0.o.weight"].Axes) != 2 || len(l.Claims["m.b.1.o.weight"].Axes) != 3 || len(infos) != len(l.Claims) {
		t.Errorf("%v", l.Claims)
	}
	_, err := split(`"to": "layers - 1"`, `"from": "dense"`).Expect([]byte(unusualConfig))
	if want := `the range 1 to 3 ("from", "to") overlaps the range 0 to 2 of an earlier entry with the same name (for tensor "{prefix}b.{layer}.o.weight")`; err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	_, l = synthetic(t, split(`"when": "!relu"`, `"from": "dense"`), unusualConfig)
	if len(l.Claims["m.b.2.o.weight"].Axes) != 2 {
		t.Error("an entry behind one for the whole loop counts")
	}
}
