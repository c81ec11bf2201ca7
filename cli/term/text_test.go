package term

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
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(1000), "1 000"},
		{Count(17177088), "17 177 088"},
		{Plural(1, "file", "files"), "1 file"},
		{Plural(0, "file", "files"), "0 files"},
		{Plural(1200, "file", "files"), "1 200 files"},
		{Size(999), "999 B"},
		{Size(121656), "121.7 kB"},
		{Size(2_000_000_000), "2.00 GB"},
		{Duration(999 * time.Millisecond), "999 ms"},
		{Duration(1500 * time.Millisecond), "1.5 s"},
		{Duration(150 * time.Second), "2m30s"},
		{Decibels(nil), "–"},
		{Decibels(&snr), "31.0 dB"},
		{Change(0.955), "−4.5 %"},
		{Change(1.021), "+2.1 %"},
		{Change(1.0004), "0.0 %"},
		{Change(0.9996), "0.0 %"},
		{Shorten("model.layers.N.mlp", 18), "model.layers.N.mlp"},
		{Shorten("model.layers.N.mlp", 6), "…N.mlp"},
	} {
		if c.have != c.want {
			t.Errorf("%q, want %q", c.have, c.want)
		}
	}
}

// TestWrap: wrapping keeps all words, keeps to the width if words allow it, and indents.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-zσ−]{1,12}`)).Draw(t, "words")
		width := rapid.IntRange(1, 40).Draw(t, "width")
		text := Wrap(strings.Join(words, " "), "> ", "  ", width)
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

// TestWrapKeepsCommands: a command to copy stays on one line.
func TestWrapKeepsCommands(t *testing.T) {
	for text, command := range map[string]string{
		"these tensors are listed by lowtoggle inspect MODEL --tensors in full":               "lowtoggle inspect MODEL --tensors",
		"the codes stay: run (lowtoggle convert MODEL OUT --format int4=32 --role streaming)": "(lowtoggle convert MODEL OUT --format int4=32 --role streaming)",
		"measure it with lowtoggle measure --w 'normal(0,1) | round(4)' --against zeros":      "lowtoggle measure --w 'normal(0,1) | round(4)' --against zeros",
		"the pair is compared by lowtoggle predict --w A: --against B: --layers. It is quick": "lowtoggle predict --w A: --against B: --layers.",
		"a file is too large: lowtoggle reads at most one":                                    "lowtoggle reads",
	} {
		for width := 10; width < 40; width++ {
			if have := Wrap(text, "note: ", "  ", width); !strings.Contains(have, command) {
				t.Fatalf("%d characters: %q", width, have)
			}
		}
	}
}

// TestCommandQuoting: a shell reads the words of a command line unchanged.
func TestCommandQuoting(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	for _, word := range []string{"out", "", "my model", "it's", `a"b\c$d`, "*", "a\nb", "σ", "\x1b[2J%s '\\\u202e\nb"} {
		line := strings.TrimPrefix(CommandLine(word), "lowtoggle ")
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
	Remarks(&b, "note", list)
	if n := strings.Count(b.String(), "note: text\n"); n != 20 || !strings.HasSuffix(b.String(), "… and 3 more; --json shows all\n") {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
	b.Reset()
	if Remarks(&b, "note", list[:21]); !strings.HasSuffix(b.String(), "… and 1 more; --json shows all\n") {
		t.Error(b.String())
	}
}

// TestWrapKeepsUnits: a number stays on the line of its unit and of its interval.
func TestWrapKeepsUnits(t *testing.T) {
	for text, whole := range map[string]string{
		"the energy of the layers falls by 0.0 %, as predicted":     "0.0 %,",
		"the lowest SNR of a layer (31.2 dB) is above the limit":    "(31.2 dB)",
		"it draws 412.5 ± 0.3 W in the mean of all launches":        "412.5 ± 0.3 W",
		"files of 12.5 GB. The search took 3.4 s; nothing was lost": "12.5 GB.",
	} {
		for width := 14; width < 50; width++ {
			if have := Wrap(text, "note: ", "  ", width); !strings.Contains(have, whole) {
				t.Fatalf("%d characters: %q", width, have)
			}
		}
	}
	if have := Wrap("42 layers and W", "", "", 4); have != "42\nlayers\nand\nW\n" {
		t.Fatalf("other words were joined: %q", have)
	}
}
