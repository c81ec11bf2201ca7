package cli

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

// TestFlagsMayStandAnywhere: the parser gets the same words, wherever flags stand between the arguments.
func TestFlagsMayStandAnywhere(t *testing.T) {
	a := newApp(io.Discard, io.Discard)
	flags := [][]string{{"--quiet"}, {"-q"}, {"--passes", "round=4"}, {"--seed=3"}, {"--min-snr", "-1"}, {"--json"}}
	rapid.Check(t, func(t *rapid.T) {
		var line, wantFlags []string
		wantArgs := rapid.SliceOfN(rapid.SampledFrom([]string{"m", "out", "-", "a b"}), 0, 3).Draw(t, "arguments")
		rest := wantArgs
		for range rapid.IntRange(0, 5).Draw(t, "flags") {
			n := rapid.IntRange(0, len(rest)).Draw(t, "arguments before")
			line, rest = append(line, rest[:n]...), rest[n:]
			f := rapid.SampledFrom(flags).Draw(t, "flag")
			line, wantFlags = append(line, f...), append(wantFlags, f...)
		}
		if rapid.Bool().Draw(t, "--") {
			line = append(line, "--")
		}
		have, err := arrange(a, append(append([]string{"convert"}, line...), rest...))
		want := slices.Concat([]string{"convert"}, wantFlags, []string{"--"}, wantArgs)
		if err != nil || !slices.Equal(have, want) {
			t.Fatalf("%q became %q, want %q (%v)", line, have, want, err)
		}
	})
}

// full is a writer with room for n bytes.
type full struct{ n int }

var errFull = errors.New("no room")

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestLostReport: a command fails if its report is not written completely, wherever writing stops.
func TestLostReport(t *testing.T) {
	var whole, stderr bytes.Buffer
	if status := Main(t.Context(), []string{"lowtoggle", "passes"}, &whole, &stderr); status != exit.Done || stderr.Len() > 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	for _, n := range []int{0, 1, whole.Len() / 2, whole.Len() - 1} {
		stderr.Reset()
		status := Main(t.Context(), []string{"lowtoggle", "passes"}, &full{n}, &stderr)
		if status != exit.Failed || !strings.Contains(stderr.String(), "the report could not be written: no room") {
			t.Errorf("room for %d bytes of %d: status %d, %q", n, whole.Len(), status, stderr.String())
		}
	}
	if status := Main(t.Context(), []string{"lowtoggle", "passes"}, &full{whole.Len()}, &stderr); status != exit.Done {
		t.Errorf("room for all: status %d", status)
	}
}
