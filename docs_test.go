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
	b.WriteString("# Which passes and recipes are there?\n\nGenerated from the table of passes by `go test . -update`.\n\n" +
		"An *exact* pass keeps the model's function and loses no bit. A *compensated* pass keeps the function in real arithmetic. A\n" +
		"*lossy* pass trades accuracy for energy. An *index* is a dimension that several tensors share, such as the neurons of an FFN. The\n" +
		"*labels* of an index are the positions along this dimension ([families.md](families.md)). The weights are the *stationary* operand\n" +
		"of a GEMM (the A operand of cuBLAS) or the *streaming* operand (the B operand); see `--role`. `llama-17m` is a small trained\n" +
		"Llama ([results.md](results.md)).\n")
	for _, r := range transform.Passes {
		p := r.Pass
		fmt.Fprintf(&b, "\n## %s\n\nUsage: `%s`. Class: %s.", p.Name, p.Usage, p.Class)
		if p.NeedsFamily {
			b.WriteString(" The pass needs a known family.")
		}
		fmt.Fprintf(&b, "\n\n%s\n", p.Doc)
	}
	b.WriteString("\n## Recipes\n\n| recipe | passes without tokens | what it does |\n|---|---|---|\n")
	for _, r := range transform.Recipes {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", r.Name, r.Passes, r.Doc)
	}
	goldenfile.Same(t, "docs/passes.md", b.Bytes())
}

// TestReadmeIsShort limits the README's lines and bytes.
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

// TestLinks checks that links between pages lead to files. It also checks that every page's title is a question, and that the
// index of docs/ lists the page by its title.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	index := filepath.Join("docs", "README.md")
	for _, page := range append([]string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}, pages...) {
		for _, l := range link.FindAllStringSubmatch(readText(t, page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), l[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, l[1], err)
			}
		}
	}
	questions := map[string]string{}
	for _, row := range indexRow.FindAllStringSubmatch(readText(t, index), -1) {
		questions[filepath.Join("docs", row[2])] = row[1]
	}
	for _, page := range pages {
		title, _, _ := strings.Cut(readText(t, page), "\n")
		title = strings.TrimPrefix(title, "# ")
		if page != index && (title != questions[page] || !strings.HasSuffix(title, "?")) {
			t.Errorf("%s has the title %q, and docs/README.md lists it as %q: both must be the question that it answers", page, title, questions[page])
		}
	}
}

var indexRow = regexp.MustCompile(`(?m)^\| (.*) \| \[[^]]*\]\(([^)]*\.md)\)( \(generated\))? \|$`)

// TestPagesAreShort limits the length of handwritten pages in docs/. Generated pages may be longer.
func TestPagesAreShort(t *testing.T) {
	const most = 250
	for _, row := range indexRow.FindAllStringSubmatch(readText(t, filepath.Join("docs", "README.md")), -1) {
		page, generated := filepath.Join("docs", row[2]), row[3] != ""
		if n := strings.Count(readText(t, page), "\n"); n > most && !generated {
			t.Errorf("%s has %d lines, at most %d are allowed: split it by questions", page, n, most)
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
