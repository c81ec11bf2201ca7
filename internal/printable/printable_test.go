package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"model.layers.0.weight": "model.layers.0.weight",
		`a\b "c" <d>`:           `a\b "c" <d>`,
		"σ − é 重み":              "σ − é 重み",
		"\x1b[2J\a":             `\u001b[2J\u0007`,
		"a\nb\tc\r\x00":         `a\nb\tc\r\u0000`,
		"\x7f\u009b31m":         `\u007f\u009b31m`,
		"a\u202eb\u2066\u200f":  `a\u202eb\u2066\u200f`,
		"\u2028\u2029\u200b":    `\u2028\u2029\u200b`,
		"\U000e0041":            `\udb40\udc41`, // a tag
		"\xff\xc3":              `\xff\xc3`,
		"\ufffd":                "\ufffd",
		"":                      "",
	} {
		if have := Quote(s); have != want {
			t.Errorf("%q is shown as %s, want %s", s, have, want)
		}
	}
}

// TestWriter: a writer keeps lines and tabs, joins split characters, and keeps JSON's values.
func TestWriter(t *testing.T) {
	text := "a\n\tb \x1b]0;x\a σ\u202e − \x80\U000e0041\u0085"
	want := "a\n\tb \\u001b]0;x\\u0007 σ\\u202e − \\x80\\udb40\\udc41\\u0085"
	for split := range len(text) + 1 {
		var b strings.Builder
		w := NewWriter(&b)
		for _, part := range []string{text[:split], text[split:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != want {
			t.Errorf("split at %d: %s, want %s", split, b.String(), want)
		}
	}
	value := strings.ToValidUTF8(text, "")
	var b strings.Builder
	if err := json.NewEncoder(NewWriter(&b)).Encode(value); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back != value {
		t.Errorf("%s is read as %q (%v), want %q", b.String(), back, err, value)
	}
}

func TestCut(t *testing.T) {
	short := strings.Repeat("é", Longest/2)
	if Cut(short) != short {
		t.Error("a short text was cut")
	}
	have := Cut("begin" + strings.Repeat("é", 100_000) + "end")
	if len(have) > Longest || !utf8.ValidString(have) || !strings.HasPrefix(have, "begin") || !strings.HasSuffix(have, "end") ||
		!strings.Contains(have, "(198608 bytes left out)") {
		t.Error(have)
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("model.layers.0.weight")
	f.Add("\x1b[2J\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		have := Quote(s)
		if !utf8.ValidString(have) || strings.ContainsFunc(have, special) {
			t.Errorf("%q is shown as %q", s, have)
		}
		if Quote(have) != have {
			t.Errorf("%q is quoted once more", have)
		}
	})
}
