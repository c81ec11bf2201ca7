package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// TestSelection: patterns have the meaning that they have in quantization_config.ignore.
func TestSelection(t *testing.T) {
	names := []string{"model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.down_proj.bias",
		"model.layers.10.mlp.down_proj.weight", "model.layers.1.mlp.gate.weight", "model.layers.1.mlp.gate_proj.weight", "lm_head.weight"}
	for _, c := range []struct {
		ignore, only string // separated by spaces
		left         string // a digit for each name that does not change
	}{
		{"", "", ""},
		{"lm_head", "", "6"},
		{"lm_head.weight", "", "6"},
		{"lm_hea", "", ""},
		{"model.layers.0.mlp.down_proj", "", "12"},
		{"model.layers.0.mlp.down_proj.bias", "", "2"},
		{"*.down_proj", "", "123"},
		{"model.layers.?.*", "", "1245"},
		{"model.layers.[!0].mlp.*", "", "45"},
		{"*.layers.[01].mlp.gate", "", "4"},
		{`re:.*mlp\.gate$`, "", "4"},
		{`re:.*gate`, "", "45"},
		{`re:gate`, "", ""}, // matches from the start
		{`re:model\.layers\.\d{1,1}\.`, "", "1245"},
		{"", "*.down_proj", "0456"},
		{"*.bias", "*.down_proj lm_head", "0245"},
		{"lm_head re:.*embed", "", "06"},
	} {
		s, err := plan.Selection{Ignore: strings.Fields(c.ignore), Only: strings.Fields(c.only)}.Selector()
		if err != nil {
			t.Fatal(err)
		}
		var left strings.Builder
		for i, name := range names {
			if s.Leaves(name) {
				left.WriteByte('0' + byte(i))
			}
		}
		if left.String() != c.left {
			t.Errorf("ignore %q, only %q: leaves %s, want %s", c.ignore, c.only, left.String(), c.left)
		}
	}
	var none *plan.Selector
	if none.Leaves("x") || !none.LeavesNone() {
		t.Error("a nil selector excludes a weight")
	}
	stored, err := plan.Selection{Only: []string{"a.scale"}}.Selector()
	if err != nil || stored.Leaves("a.weight", "a.codes", "a.scale") || !stored.Leaves("b.weight", "b.scale") {
		t.Error("a weight's names do not decide for all its tensors", err)
	}
}

// TestSelectionErrors: the error for a pattern without a match suggests similar names.
func TestSelectionErrors(t *testing.T) {
	var weights [][]string
	for _, name := range []string{"model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight",
		"model.layers.2.mlp.up_proj.weight", "model.layers.3.mlp.up_proj.weight", "lm_head.weight"} {
		weights = append(weights, []string{name})
	}
	for pattern, want := range map[string]string{
		"lm_haed":                       `pattern "lm_haed": matches no module and no tensor of the model (did you mean lm_head?)`,
		"*.dwn_proj":                    `(did you mean *.down_proj?)`,
		"*.mpl.*":                       `ignore: pattern "*.mpl.*": matches no module and no tensor of the model (did you mean *.mlp.*?)`,
		`re:.*layer\.0\..*`:             `(did you mean re:.*layers\.0\..*?)`,
		"mpl.*":                         `: the first module is`, // mlp.* matches nothing either
		"mlp.down_proj":                 `: there is model.layers.0.mlp.down_proj`,
		"layers.9.mlp.up_proj.weight":   `: there are model.layers.0.mlp.up_proj, model.layers.1.mlp.up_proj and 2 others`,
		`re:.*vision`:                   `: the first module is model.layers.0.mlp.down_proj; lowtoggle inspect MODEL --tensors lists all`,
		"re:(":                          "missing closing )",
		"re:":                           "is empty",
		"":                              "is empty",
		"a[z-a]":                        "is not a valid glob",
		strings.Repeat("x", 5000):       "is longer than 4096 bytes",
		"re:(((a{999}){999}){999})":     "re:",
		"re:.*(?=x)":                    "invalid or unsupported Perl syntax",
		"*[lm_head":                     "matches no module",
		`model.layers.0.mlp.down_proj\`: "matches no module",
	} {
		s, err := plan.Selection{Ignore: []string{pattern}}.Selector()
		if err == nil {
			err = s.Check(weights)
		}
		if !errors.Is(err, plan.ErrPattern) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: %v, want %s", pattern, err, want)
		}
	}
	if _, err := (plan.Selection{Only: make([]string, 10001)}).Selector(); err == nil || !strings.Contains(err.Error(), "at most 10000") {
		t.Error(err)
	}
}
