package model

import (
	"slices"
	"testing"
)

// TestSplitPatterns: commas within brackets belong to a pattern.
func TestSplitPatterns(t *testing.T) {
	for list, want := range map[string][]string{
		"":                     nil,
		"lm_head":              {"lm_head"},
		"lm_head,*.gate":       {"lm_head", "*.gate"},
		`re:.*\.\d{1,2}\..*,x`: {`re:.*\.\d{1,2}\..*`, "x"},
		"re:(a,b),[c,d]*,e":    {"re:(a,b)", "[c,d]*", "e"},
		"a,":                   {"a", ""},
		"a),b":                 {"a)", "b"},
	} {
		if got := splitPatterns(list); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
