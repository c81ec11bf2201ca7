package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/lowtoggle/lowtoggle/"

// forTests are packages that only tests may import.
var forTests = []string{"internal/fakestore", "internal/goldenfile", "internal/htmlcheck", "internal/reference", "internal/testdevice", "internal/testmodel", "internal/testplan"}

// tableRow is a row of the table of packages in docs/packages.md.
type tableRow struct {
	folders []string
	imports []string
}

// TestImports checks the imports of all packages, without tests, against the table of packages in docs/packages.md.
func TestImports(t *testing.T) {
	data, err := os.ReadFile("docs/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(string(data))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := importsOf(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range checkImports(rows, packages) {
		t.Error(complaint)
	}
}

// TestImportsComplains checks that every import that the table forbids is reported.
func TestImportsComplains(t *testing.T) {
	table := "x\n\n| folder | holds | may import |\n|---|---|---|\n" +
		"| `weights`, `internal/chart` | files | – |\n| `cost` | costs | `weights/...` |\n| `cli`, `internal/reference` | commands | `cost` |\n\nmore `text`\n"
	rows, err := readRows(table)
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	kept := func() map[string][]string {
		return map[string][]string{"weights": nil, "internal/chart": nil, "cost": {"weights", "internal/chart"}, "cli": {"cost"}, "internal/reference": nil}
	}
	if c := checkImports(rows, kept()); c != nil {
		t.Errorf("a table that is kept: %q", c)
	}
	for want, change := range map[string]func(map[string][]string){
		"cli imports weights: the table of packages does not allow it":   func(p map[string][]string) { p["cli"] = []string{"weights"} },
		"weights imports cost: the table of packages does not allow it":  func(p map[string][]string) { p["weights"] = []string{"cost"} },
		"cost imports internal/reference: only tests may":                func(p map[string][]string) { p["cost"] = []string{"internal/reference"} },
		"gemm is not in the table of packages":                           func(p map[string][]string) { p["gemm"] = nil },
		"cost is in the table of packages, and there is no such package": func(p map[string][]string) { delete(p, "cost") },
	} {
		packages := kept()
		change(packages)
		if c := checkImports(rows, packages); !slices.Contains(c, want) {
			t.Errorf("%q, want %q", c, want)
		}
	}
	upward := []tableRow{{folders: []string{"weights"}, imports: []string{"cost"}}, {folders: []string{"cost"}}}
	if c := checkImports(upward, map[string][]string{"weights": {"cost"}, "cost": nil}); len(c) != 1 || c[0] != "weights may import cost, which stands below it in the table of packages" {
		t.Errorf("a row that reaches back: %q", c)
	}
}

var quoted = regexp.MustCompile("`([^`]*)`")

// readRows reads the table whose header is "| folder | holds | may import |".
func readRows(text string) (rows []tableRow, err error) {
	_, text, found := strings.Cut(text, "\n| folder | holds | may import |\n")
	if !found {
		return nil, fs.ErrNotExist
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			break
		}
		if strings.HasPrefix(cells[1], "-") {
			continue
		}
		names := func(cell string) (list []string) {
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				list = append(list, strings.TrimSuffix(m[1], "/"))
			}
			return list
		}
		rows = append(rows, tableRow{names(cells[1]), names(cells[3])})
	}
	return rows, nil
}

// checkImports lists the imports that the table does not allow, and the rows that do not fit the packages.
func checkImports(rows []tableRow, packages map[string][]string) (complaints []string) {
	row := map[string]int{}
	for i, r := range rows {
		for _, folder := range r.folders {
			row[folder] = i
			if _, ok := packages[folder]; !ok {
				complaints = append(complaints, folder+" is in the table of packages, and there is no such package")
			}
		}
	}
	for i, r := range rows {
		for _, name := range r.imports {
			if at, ok := row[strings.TrimSuffix(name, "/...")]; ok && at > i {
				complaints = append(complaints, r.folders[0]+" may import "+name+", which stands below it in the table of packages")
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		i, ok := row[folder]
		if !ok {
			complaints = append(complaints, folder+" is not in the table of packages")
			continue
		}
		for _, imported := range packages[folder] {
			switch {
			case slices.Contains(forTests, imported) && !slices.Contains(forTests, folder):
				complaints = append(complaints, folder+" imports "+imported+": only tests may")
			case !strings.HasPrefix(imported, "internal/") && !slices.ContainsFunc(rows[i].imports, func(name string) bool { return allows(name, imported) }):
				complaints = append(complaints, folder+" imports "+imported+": the table of packages does not allow it")
			}
		}
	}
	return complaints
}

// allows reports whether an entry of the table covers a package.
func allows(entry, folder string) bool {
	parent, below := strings.CutSuffix(entry, "/...")
	return folder == parent || below && strings.HasPrefix(folder, parent+"/")
}

// importsOf lists which packages of the module every package imports, for any system, tests apart. The root package and
// nested modules are left out.
func importsOf(module fs.FS) (map[string][]string, error) {
	packages := map[string][]string{}
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, base := path.Dir(name), path.Base(name)
		switch {
		case name == ".":
			return nil
		case d.IsDir():
			if _, err := fs.Stat(module, name+"/go.mod"); err == nil || base == "testdata" || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		case folder == "." || !strings.HasSuffix(base, ".go"):
			return nil
		}
		list := packages[folder] // a folder with only tests gets an entry, too
		if !strings.HasSuffix(base, "_test.go") {
			data, err := fs.ReadFile(module, name)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range file.Imports {
				quoted, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					return err
				}
				if own, ok := strings.CutPrefix(quoted, modulePath); ok && !slices.Contains(list, own) {
					list = append(list, own)
				}
			}
		}
		packages[folder] = list
		return nil
	})
	return packages, err
}
