package transform_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// TestMeasuredCard: a measured perplexity changes the card's lines about accuracy, and the manifest's digest of the card. The digest
// of a card that the user has edited stays, so that convert --force does not replace the folder.
func TestMeasuredCard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	ok(t, demo.Write(dir))
	m, err := weights.Open(dir)
	ok(t, err)
	defer m.Close()
	out := applied(t, m, makePlan(t, m, "round=5", 0))
	measured := transform.Measurement{Comparison: evaluate.Comparison{Before: 1, After: 1.01,
		Comparison: forward.Comparison{Difference: 0.01, Low: math.Inf(-1), High: math.Inf(1)},
		Tokens:     tokens.Set{Part: tokens.Part{N: 2, T: 11}, Purpose: tokens.Evaluation, File: "a/b`<!-- lowtoggle: end -->"}},
		Time: time.Date(2026, 5, 6, 23, 0, 0, 0, time.UTC), Command: "lowtoggle eval", Version: "7"}
	write := func() {
		t.Helper()
		o, err := weights.Open(out)
		ok(t, err)
		defer o.Close()
		c, err := transform.OpenCard(m, o, nil)
		ok(t, err)
		ok(t, c.Write(t.Context(), measured))
	}
	made := func() error {
		_, err := apply.OpenMade(t.Context(), out, 1, nil)
		return err
	}
	card, manifest := filepath.Join(out, "README.md"), filepath.Join(out, "lowtoggle.json")
	read := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		ok(t, err)
		return string(data)
	}
	before, first := read(card), read(manifest)
	write()
	text := read(card)
	want := "\n### Accuracy\n\nMeasured on 2026-05-06 on 20 evaluation tokens of `b__!-- lowtoggle: end --_`: the perplexity changes from 2.71828 to 2.7456 (+1.005 %).\n\n" +
		"Command: `lowtoggle eval` (lowtoggle 7).\n\n### How"
	if !strings.Contains(text, want) || strings.Contains(text, "not measured.") {
		t.Errorf("the card:\n%s", text)
	}
	a, _, _ := strings.Cut(before, "### Accuracy")
	_, z, _ := strings.Cut(before, "### How")
	if !strings.HasPrefix(text, a) || !strings.HasSuffix(text, z) {
		t.Errorf("other lines changed:\n%s", text)
	}
	ok(t, made())
	ok(t, os.WriteFile(manifest, []byte(first), 0o666)) // as if the process was killed between both files
	if err := made(); !errors.Is(err, apply.ErrNotMade) {
		t.Errorf("the old manifest: %v", err)
	}
	write()
	ok(t, made())
	ok(t, os.WriteFile(card, []byte("# Mine\n"+text), 0o666))
	last := read(manifest)
	measured.Time = measured.Time.AddDate(1, 0, 0)
	write()
	if got := read(card); got != "# Mine\n"+strings.Replace(text, "on 2026-", "on 2027-", 1) {
		t.Errorf("an edited card:\n%s", got)
	}
	if got := read(manifest); got != last {
		t.Error("the manifest has the digest of an edited card")
	}
	if err := made(); !errors.Is(err, apply.ErrNotMade) {
		t.Errorf("an edited card: %v", err)
	}
	measured.Difference = math.NaN()
	o, err := weights.Open(out)
	ok(t, err)
	defer o.Close()
	c, err := transform.OpenCard(m, o, nil)
	ok(t, err)
	if err := c.Write(t.Context(), measured); !errors.Is(err, transform.ErrCard) {
		t.Errorf("a perplexity that is not a number: %v", err)
	}
}
