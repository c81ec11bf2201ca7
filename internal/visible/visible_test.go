package visible

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	for have, want := range map[string]string{
		"model.layers.0.weight": "model.layers.0.weight",
		"größe − 4 σ":           "größe − 4 σ",
		"a\u202eb":              "a⟨U+202E⟩b",
		"a\x00\x1b[31m":         "a⟨U+0000⟩⟨U+001B⟩[31m",
		"a\u200db\ufeff":        "a⟨U+200D⟩b⟨U+FEFF⟩",
		"line\nline\ttab":       "line⟨U+000A⟩line⟨U+0009⟩tab",
		"a\xffb":                "a⟨FF⟩b",
		"\u00a0":                "⟨U+00A0⟩",
	} {
		if got := Text(have); got != want {
			t.Errorf("%q is shown as %q, want %q", have, got, want)
		}
	}
}

// Every character that is shown has a shape, and text that is shown stays when it is shown again.
func TestTextShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := Text(rapid.String().Draw(t, "text"))
		for _, r := range text {
			if !unicode.IsGraphic(r) {
				t.Fatalf("%q has %U", text, r)
			}
		}
		if !utf8.ValidString(text) || Text(text) != text {
			t.Fatalf("%q becomes %q", text, Text(text))
		}
	})
}
