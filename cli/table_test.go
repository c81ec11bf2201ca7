package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

func TestTable(t *testing.T) {
	tab := newTable("layers", "n", "lowest\nSNR")
	tab.add("mlp.up", "12", "31.0 dB")
	tab.add("norm", "1", "–")
	tab.add("total", "13", "")
	var b strings.Builder
	tab.print(&b)
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

// A name that is too long loses its beginning, unless it must stay whole.
func TestTableFits(t *testing.T) {
	name := strings.Repeat("model.", 20) + "weight"
	tab := newTable("layers", "n")
	tab.add(name, "1")
	var b strings.Builder
	tab.print(&b)
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(line)) - 1; n > lineWidth {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), "\n…") || !strings.Contains(b.String(), "model.weight  1\n") {
		t.Error(b.String())
	}
	b.Reset()
	tab.whole = true
	if tab.print(&b); !strings.Contains(b.String(), name+"  1\n") {
		t.Error(b.String())
	}
}

func TestByKind(t *testing.T) {
	var b byKind
	b.add("too coarse", "layers.0.mlp.weight")
	b.add("lost", "layers.1.mlp.weight")
	b.add("too coarse", "layers.1.mlp.weight")
	b.add("too coarse", "head.weight")
	have := b.lines(func(tensor string) string { return (*arch.Layout)(nil).Kind(tensor) })
	want := []string{"too coarse: 2 × layers.N.mlp, 1 × head", "layers.1.mlp.weight: lost"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}
