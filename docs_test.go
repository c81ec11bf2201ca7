package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/transform"
)

var update = flag.Bool("update", false, "rewrite the generated documentation")

// TestPassReference checks that docs/passes.md agrees with the table of passes.
func TestPassReference(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Passes and recipes\n\nGenerated from the table of passes by `go test . -update`.\n")
	for _, p := range transform.Passes {
		fmt.Fprintf(&b, "\n## %s\n\n`%s` · %s", p.Name, p.Usage, p.Class)
		if p.NeedsFamily {
			b.WriteString(" · needs a known family")
		}
		fmt.Fprintf(&b, "\n\n%s\n", p.Doc)
	}
	b.WriteString("\n## Recipes\n\n| recipe | passes | what it does |\n|---|---|---|\n")
	for _, r := range transform.Recipes {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", r.Name, r.Passes, r.Doc)
	}
	reference(t, "docs/passes.md", b.Bytes())
}

// reference compares a generated document with its file. With -update it writes the file.
func reference(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(want)); diff != "" {
		t.Errorf("%s is stale; run go test . -update:\n%s", path, diff)
	}
}
