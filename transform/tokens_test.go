package transform

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// TestSearchKey: searches with possibly different results have different keys. Searches with different budgets share
// a key.
func TestSearchKey(t *testing.T) {
	calibration, err := cost.FindCalibration("h200")
	if err != nil {
		t.Fatal(err)
	}
	passes, err := ParsePasses("trellis,compensate")
	if err != nil {
		t.Fatal(err)
	}
	budget := func(v float64) pass.Budget { return pass.Budget{MaxLoss: &v} }
	o := Options{Passes: passes, Workload: cost.DefaultWorkload, Cost: calibration, Budget: budget(0.001)}
	with := func(change func(*Options)) *Options {
		other := o
		change(&other)
		return &other
	}
	seen := map[string]string{}
	apart := func(what string, tokens Tokens, o *Options) {
		key, err := tokens.searchKey(o)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[key]; twice {
			t.Errorf("%s and %s share results", what, other)
		}
		seen[key] = what
	}
	tokens := Tokens{key: "model and tokens"}
	apart("one search", tokens, &o)
	apart("other tokens", Tokens{key: "others"}, &o)
	apart("another family", Tokens{key: tokens.key, family: "another"}, &o)
	apart("other passes", tokens, with(func(o *Options) { o.Passes = o.Passes[1:] }))
	apart("another workload", tokens, with(func(o *Options) { o.Workload = cost.Workload{Decode: 1} }))
	apart("another role", tokens, with(func(o *Options) { o.Role = cost.Streaming }))
	apart("another calibration", tokens, with(func(o *Options) { o.Cost = &cost.Calibration{Card: "another"} }))
	apart("another version", tokens, with(func(o *Options) { o.Version = "another" }))
	one, err := tokens.searchKey(&o)
	more, err2 := tokens.searchKey(with(func(o *Options) { o.Budget, o.Workers = budget(0.01), 7 }))
	if one != more || errors.Join(err, err2) != nil {
		t.Error("another budget or number of workers has another key")
	}
}

// TestFamilyBesideTokens: a family equal to that of the tokens is accepted, however it was read. Another family is an
// error. No family means that of the tokens.
func TestFamilyBesideTokens(t *testing.T) {
	m, file := demoModel(t)
	js, err := os.ReadFile(filepath.Join("..", "weights", "arch", "families", "llama.json"))
	testmodel.OK(t, err)
	parsed := func(js []byte) *arch.Family {
		f, err := arch.Parse(js)
		testmodel.OK(t, err)
		return f
	}
	llama, other := parsed(js), parsed(bytes.Replace(js, []byte(`["llama"]`), []byte(`["llama", "mine"]`), 1))
	again := testmodel.Open(t, m.Dir)
	for name, c := range map[string]struct {
		tokens, options *arch.Family
		differ          bool
	}{
		"none":                 {nil, nil, false},
		"the same, read twice": {llama, parsed(js), false},
		"the catalogue's":      {nil, llama, false},
		"that of the tokens":   {other, nil, false},
		"another":              {nil, other, true},
		"another than given":   {other, llama, true},
	} {
		tok, err := NewTokens(m, file, c.tokens, nil, 0)
		testmodel.OK(t, err)
		for _, opened := range []*weights.Model{m, again} {
			_, err := openSource(opened, c.options, tok, nil, quantise.Format{}, plan.Selection{})
			switch {
			case c.differ:
				testmodel.WantError(t, err, m.Dir, "the family llama differs from the family of the tokens")
			case err != nil:
				t.Errorf("%s: %v", name, err)
			}
		}
		if f, err := tok.familyBeside(nil); f != c.tokens || err != nil {
			t.Errorf("%s: without a family of its own a call takes %v, error %v", name, f, err)
		}
	}
}
