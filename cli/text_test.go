package cli

import (
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	snr := 31.04
	for _, c := range []struct{ have, want string }{
		{count(0), "0"},
		{count(999), "999"},
		{count(1000), "1 000"},
		{count(17177088), "17 177 088"},
		{plural(1, "file", "files"), "1 file"},
		{plural(0, "file", "files"), "0 files"},
		{plural(1200, "file", "files"), "1 200 files"},
		{size(999), "999 B"},
		{size(121656), "121.7 kB"},
		{size(2_000_000_000), "2.00 GB"},
		{duration(999 * time.Millisecond), "999 ms"},
		{duration(1500 * time.Millisecond), "1.5 s"},
		{duration(150 * time.Second), "2m30s"},
		{decibels(nil), "–"},
		{decibels(&snr), "31.0 dB"},
		{percent(0.955), "−4.5 %"},
		{percent(1.021), "+2.1 %"},
		{percent(1.0004), "0.0 %"},
		{percent(0.9996), "0.0 %"},
		{new(ratio).change(), "–"},
		{shorten("model.layers.N.mlp", 18), "model.layers.N.mlp"},
		{shorten("model.layers.N.mlp", 6), "…N.mlp"},
	} {
		if c.have != c.want {
			t.Errorf("%q, want %q", c.have, c.want)
		}
	}
}

// Wrapping loses no word, keeps to the width where words allow it, and indents.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-zσ−]{1,12}`)).Draw(t, "words")
		width := rapid.IntRange(1, 40).Draw(t, "width")
		text := wrap(strings.Join(words, " "), "> ", "  ", width)
		if have := strings.Fields(strings.TrimPrefix(text, "> ")); strings.Join(have, " ") != strings.Join(words, " ") {
			t.Fatalf("%q became %q", words, have)
		}
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if n := utf8.RuneCountInString(line); n > width && len(strings.Fields(strings.TrimPrefix(line, ">"))) > 1 {
				t.Fatalf("%d characters in %q, more than %d", n, line, width)
			}
			if first := strings.HasPrefix(line, "> "); first != (i == 0) {
				t.Fatalf("line %d is %q", i, line)
			}
		}
	})
}

// A shell reads the words of a command line as they were.
func TestCommandQuoting(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	for _, word := range []string{"out", "", "my model", "it's", `a"b\c$d`, "*", "a\nb", "σ"} {
		line := strings.TrimPrefix(command(word), "lowtoggle ")
		have, err := exec.Command(sh, "-c", "printf %s "+line).Output()
		if err != nil || string(have) != word {
			t.Errorf("%q is written %s and read as %q (%v)", word, line, have, err)
		}
	}
}

func TestLongListsAreCut(t *testing.T) {
	list := make([]string, 23)
	for i := range list {
		list[i] = "text"
	}
	var b strings.Builder
	remarks(&b, "note", list)
	if n := strings.Count(b.String(), "note: text\n"); n != 20 || !strings.HasSuffix(b.String(), "… and 3 more notes; --json shows all\n") {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
	b.Reset()
	if remarks(&b, "note", list[:21]); !strings.HasSuffix(b.String(), "… and 1 more note; --json shows all\n") {
		t.Error(b.String())
	}
}
