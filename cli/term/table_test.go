package term

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	tab := NewTable("layers", "n", "lowest\nSNR")
	tab.Add("mlp.up", "12", "31.0 dB")
	tab.Add("norm", "1", "–")
	tab.Add("total", "13", "")
	var b strings.Builder
	tab.Print(&b)
	want := `
             lowest
layers   n      SNR
──────  ──  ───────
mlp.up  12  31.0 dB
norm     1        –
──────  ──  ───────
total   13
`
	if diff := cmp.Diff(want[1:], b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestTableFits: a long name loses its beginning, unless it must stay whole.
func TestTableFits(t *testing.T) {
	name := strings.Repeat("model.", 20) + "weight"
	tab := NewTable("layers", "n")
	tab.Add(name, "1")
	var b strings.Builder
	tab.Print(&b)
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(line)) - 1; n > Width {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), "\n…") || !strings.Contains(b.String(), "model.weight  1\n") {
		t.Error(b.String())
	}
	b.Reset()
	tab.Whole = true
	if tab.Print(&b); !strings.Contains(b.String(), name+"  1\n") {
		t.Error(b.String())
	}
}
