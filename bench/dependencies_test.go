package bench

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestDependencies holds docs/dependencies.md against go.mod: every module has a licence and a reason, and no row is of
// a module that is gone.
func TestDependencies(t *testing.T) {
	page, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, there := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+/\S+) \| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = true
		if !slices.Contains([]string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MIT and Apache-2.0", "MPL-2.0", "Unlicense"}, m[2]) || strings.TrimSpace(m[3]) == "" {
			t.Errorf("%s: licence %q, reason %q", m[1], m[2], m[3])
		}
	}
	for _, file := range []string{"../go.mod", "../tools/go.mod", "../tools/sbom/go.mod", "../tools/release/go.mod", "../tools/kubernetes/go.mod"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.Parse(file, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range mod.Require {
			tools := file != "../go.mod" // whose own dependencies are no part of the program
			if !listed[r.Mod.Path] && !tools {
				t.Errorf("%s is in %s: say in docs/dependencies.md why, and its licence", r.Mod.Path, file)
			}
			there[r.Mod.Path] = true
		}
		for _, tool := range mod.Tool {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(listed)), func(path string) bool { return tool.Path == path || strings.HasPrefix(tool.Path, path+"/") }) {
				t.Errorf("%s is a tool of %s: say in docs/dependencies.md why, and its licence", tool.Path, file)
			}
		}
	}
	for path := range there {
		delete(listed, path)
	}
	for path := range listed {
		t.Errorf("docs/dependencies.md lists %s, which is in no go.mod", path)
	}
}
