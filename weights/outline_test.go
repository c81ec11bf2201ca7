package weights

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestOutline: every part of digits alone becomes N, and nothing else changes.
func TestOutline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`([a-c0-9٣_]{0,3}\.){0,4}[a-c0-9]{0,2}`).Draw(t, "name")
		words := strings.Split(name, ".")
		for i, w := range words {
			if w != "" && strings.Trim(w, "0123456789") == "" {
				words[i] = "N"
			}
		}
		if have, want := Outline(name), strings.Join(words, "."); have != want {
			t.Fatalf("%q has the outline %q, want %q", name, have, want)
		}
	})
}
