package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/transform"
)

// TestPassReference checks that docs/passes.md agrees with the table of passes.
func TestPassReference(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Passes and recipes\n\nGenerated from the table of passes by `go test . -update`.\n")
	for _, r := range transform.Passes {
		p := r.Pass
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
	goldenfile.Same(t, "docs/passes.md", b.Bytes())
}

// TestReadmeIsShort holds the README to what one reads before trying a program.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const lines, bytes = 200, 9 << 10
	if n := strings.Count(string(text), "\n"); n > lines || len(text) > bytes {
		t.Errorf("README.md has %d lines and %d bytes, at most %d and %d are allowed: move text into docs/", n, len(text), lines, bytes)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestLinks checks that links between pages lead to files, and that the index of docs/ lists every page.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{filepath.Join("docs", "README.md"): true}
	for _, page := range append([]string{"README.md", "CONTRIBUTING.md"}, pages...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			target := filepath.Join(filepath.Dir(page), l[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, l[1], err)
			}
			if page == filepath.Join("docs", "README.md") {
				listed[target] = true
			}
		}
	}
	for _, page := range pages {
		if !listed[page] {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}
