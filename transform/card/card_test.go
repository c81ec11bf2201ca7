package card

import (
	"bytes"
	"strings"
	"testing"
)

var quantized = Base{Model: "org/base", Relation: "quantized"}

const written = begin + "\nWhat was changed.\n" + end + "\n"

// TestWrite: the rest of a card keeps its bytes.
func TestWrite(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"no card":          {"", "---\nbase_model: org/base\nbase_model_relation: quantized\n---\n\n" + written},
		"no front matter":  {"# Title\n\nText", "---\nbase_model: org/base\nbase_model_relation: quantized\n---\n\n# Title\n\nText\n\n" + written},
		"fields are added": {"---\nlicense: mit # yes\ntags: [a,  b]\n---\n# T\n", "---\nlicense: mit # yes\ntags: [a,  b]\nbase_model: org/base\nbase_model_relation: quantized\n---\n# T\n\n" + written},
		"fields are replaced": {"---\nbase_model:\n- old/one\n- old/two\n\n# a comment\nlicense:   mit\nbase_model_relation: merge\n---\n# T\n",
			"---\nbase_model: org/base\n\n# a comment\nlicense:   mit\nbase_model_relation: quantized\n---\n# T\n\n" + written},
		"a block scalar":    {"---\nx: |\n  base_model: no\n  ---\nbase_model: a\n---\n", "---\nx: |\n  base_model: no\n  ---\nbase_model: org/base\nbase_model_relation: quantized\n---\n\n" + written},
		"empty":             {"---\n---\nT\n", "---\nbase_model: org/base\nbase_model_relation: quantized\n---\nT\n\n" + written},
		"an older section":  {"A\n\n" + begin + "\nold\n" + end + "\nB\n", "---\nbase_model: org/base\nbase_model_relation: quantized\n---\n\nA\n\n" + written + "B\n"},
		"two sections":      {begin + end + "\nA\n" + begin + "\nold\n" + end + "\nB\n", "---\nbase_model: org/base\nbase_model_relation: quantized\n---\n\n" + written + "A\nB\n"},
		"half a section":    {"A " + begin + "\n", "---\nbase_model: org/base\nbase_model_relation: quantized\n---\n\nA " + begin + "\n\n" + written},
		"CRLF":              {"---\r\na: b\r\n---\r\nT\r\n", strings.ReplaceAll("---\na: b\nbase_model: org/base\nbase_model_relation: quantized\n---\nT\n\n"+written, "\n", "\r\n")},
		"a line, no matter": {"---\nT\n", "---\nbase_model: org/base\nbase_model_relation: quantized\n---\n\n---\nT\n\n" + written},
		"a byte order mark": {"\ufeff---\na: b\n---\nT\n", "\ufeff---\na: b\nbase_model: org/base\nbase_model_relation: quantized\n---\nT\n\n" + written},
	} {
		got, ok := Write([]byte(c.source), quantized, "What was changed.\n")
		if string(got) != c.want || !ok {
			t.Errorf("%s, %v:\n%s\nwant:\n%s", name, ok, got, c.want)
		}
		again, _ := Write(got, quantized, "What was changed.\n")
		if !bytes.Equal(again, got) {
			t.Errorf("%s: again:\n%s", name, again)
		}
		if !bytes.Equal(Kept(got), Kept([]byte(c.source))) {
			t.Errorf("%s: kept %q, and of the source %q", name, Kept(got), Kept([]byte(c.source)))
		}
		if BaseOf(got) != "org/base" {
			t.Errorf("%s: base %q", name, BaseOf(got))
		}
	}
	for _, source := range []string{"---\n{a: b}\n---\nT\n", "---\na: [\n---\nT\n", "---\n- a\n---\nT\n"} {
		got, ok := Write([]byte(source), quantized, "x")
		if ok || !strings.HasPrefix(string(got), source) {
			t.Errorf("%q: %v, %s", source, ok, got)
		}
	}
	if got, _ := Write([]byte("---\nbase_model: a/b\nbase_model_relation: adapter\n---\n"), Base{Model: "7"}, "x"); !strings.HasPrefix(string(got), "---\nbase_model: \"7\"\n---\n") {
		t.Errorf("%s", got)
	}
}

// TestKept: a changed text differs from the source's.
func TestKept(t *testing.T) {
	source := []byte("---\nlicense: mit\n---\n# T\n")
	card, _ := Write(source, quantized, "x")
	for _, change := range [][2]string{{"mit", "gpl"}, {"# T", "# U"}, {end + "\n", end + "\nmore"}} {
		if bytes.Equal(Kept(bytes.Replace(card, []byte(change[0]), []byte(change[1]), 1)), Kept(source)) {
			t.Errorf("%q is not noticed", change)
		}
	}
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte("---\na: b\nbase_model:\n- x\n---\nT\n" + begin + end))
	f.Add([]byte("---\r\n---\r\n"))
	for _, br := range []string{"\r", "\u0085", "\u2028", "\u2029"} { // line breaks of YAML
		f.Add([]byte("---\na:" + br + "-\n---"))
		f.Add([]byte("---\na: 1" + br + "base_model: x\nb: 1\n---\n"))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		card, _ := Write(source, quantized, "x")
		if again, _ := Write(card, quantized, "x"); !bytes.Equal(again, card) {
			t.Errorf("%q: %q, and again %q", source, card, again)
		}
		if !bytes.Equal(Kept(card), Kept(source)) {
			t.Errorf("%q: kept %q, want %q", source, Kept(card), Kept(source))
		}
	})
}

// TestReplace: only the lines below the heading change, with the section's line breaks.
func TestReplace(t *testing.T) {
	section := begin + "\n## Converted\n\n### Energy\n\nLess.\n\n### Accuracy\n\nNot measured.\nTwo lines.\n\n### How\n\nSo.\n" + end + "\n"
	want := begin + "\n## Converted\n\n### Energy\n\nLess.\n\n### Accuracy\n\nMeasured.\n\nHere.\n\n### How\n\nSo.\n" + end + "\n"
	atEnd := begin + "\n### Accuracy\n\nOld.\n" + end + "\n"
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	for name, c := range map[string]struct{ card, want string }{
		"alone":           {section, want},
		"amid a text":     {"---\na: b\n---\n# T\n\n### Accuracy\n\nOurs.\n\n" + section + "\n### Accuracy\n\nOurs, too.", "---\na: b\n---\n# T\n\n### Accuracy\n\nOurs.\n\n" + want + "\n### Accuracy\n\nOurs, too."},
		"CRLF":            {crlf("A\n\n" + section + "B\n"), crlf("A\n\n" + want + "B\n")},
		"CRLF in it only": {"A\n\n" + crlf(section) + "B\n", "A\n\n" + crlf(want) + "B\n"},
		"at its end":      {"A\n" + atEnd + "B\n", "A\n" + begin + "\n### Accuracy\n\nMeasured.\n\nHere.\n" + end + "\nB\n"},
		"nothing below":   {strings.Replace(section, "\nNot measured.\nTwo lines.\n", "", 1), want},
		"half a section":  {"A " + end + " " + begin + "\n" + section, "A " + end + " " + begin + "\n" + want},
	} {
		got, ok := Replace([]byte(c.card), "Accuracy", "Measured.\n\nHere.\n")
		if string(got) != c.want || !ok {
			t.Errorf("%s, %v:\n%q\nwant:\n%q", name, ok, got, c.want)
		}
		again, ok := Replace(got, "Accuracy", "Measured.\n\nHere.\n")
		if !bytes.Equal(again, got) || !ok {
			t.Errorf("%s: again, %v:\n%q", name, ok, again)
		}
	}
	for _, card := range []string{"", "# T\n\n### Accuracy\n\nOurs.\n", begin + "\n### Energy\n" + end, section[:len(section)-9],
		begin + "\n### Accuracy\n\n### Accuracy\n" + end} {
		if got, ok := Replace([]byte(card), "Accuracy", "x"); ok || string(got) != card {
			t.Errorf("%q: %v, %q", card, ok, got)
		}
	}
}
