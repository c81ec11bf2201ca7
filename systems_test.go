package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// releaseSystems are the systems of a release that are built without cgo, besides this system. Release builds compile and link
// all of them.
var releaseSystems = []string{"linux/arm64", "darwin/arm64", "windows/amd64"}

// TestOtherSystems type-checks the whole module for other systems, against their standard library and dependencies. Compiling
// would take minutes and find no more errors, because the module has no assembly for other systems.
func TestOtherSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the standard library")
	}
	for _, system := range releaseSystems {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			name, arch, _ := strings.Cut(system, "/")
			list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,SFiles,ImportMap,Module", "./...")
			list.Env = append(os.Environ(), "GOOS="+name, "GOARCH="+arch, "CGO_ENABLED=0")
			list.Stderr = os.Stderr
			out, err := list.Output()
			if err != nil {
				t.Fatal(err)
			}
			problems, checked, err := checkTypes(strings.NewReader(string(out)), types.SizesFor("gc", arch))
			if err != nil {
				t.Fatal(err)
			}
			if checked < 50 {
				t.Errorf("%d packages of this module were checked", checked)
			}
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
}

// TestCheckTypes checks that code that would not compile is reported: a wrong type, an unknown name of another package, a
// constant that overflows, an unused import, and a function without a body.
func TestCheckTypes(t *testing.T) {
	dir, list := t.TempDir(), ""
	for _, p := range []struct{ name, text string }{
		{"z", "package z\n"},
		{"a", "package a\n\nimport \"m/z\"\n\nvar X int32 = 1 << 40\n\nvar Y string = 2\n\nfunc F()\n\nfunc G() { for {} }\n"},
		{"b", "package b\n\nimport \"m/a\"\n\nvar _ = a.Missing\n"},
	} {
		if err := os.WriteFile(filepath.Join(dir, p.name+".go"), []byte(p.text), 0o666); err != nil {
			t.Fatal(err)
		}
		list += fmt.Sprintf(`{"ImportPath": "m/%s", "Dir": %q, "GoFiles": ["%[1]s.go"], "Module": {"Main": true}}`, p.name, dir)
	}
	problems, checked, err := checkTypes(strings.NewReader(list), types.SizesFor("gc", "arm64"))
	if err != nil || checked != 3 {
		t.Fatal(checked, err)
	}
	all := fmt.Sprint(problems)
	for _, want := range []string{"overflows", "cannot use 2", "undefined: a.Missing", `"m/z" imported and not used`, "F has no body"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not found: %s", want, all)
		}
	}
	if len(problems) != 5 {
		t.Errorf("%d problems: %s", len(problems), all)
	}
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Dir string
	GoFiles, SFiles []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// checkTypes reads a list of packages, each after its imports, and returns the problems of this module's packages. It reads only
// the declarations of other packages.
func checkTypes(list io.Reader, sizes types.Sizes) (problems []error, checked int, err error) {
	packages := map[string]*types.Package{"unsafe": types.Unsafe}
	for all := json.NewDecoder(list); ; {
		var p listed
		if err := all.Decode(&p); errors.Is(err, io.EOF) {
			return problems, checked, nil
		} else if err != nil {
			return nil, 0, err
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		ours := p.Module != nil && p.Module.Main
		positions := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(positions, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, 0, err
			}
			files = append(files, f)
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && ours && d.Body == nil && len(p.SFiles) == 0 {
					problems = append(problems, fmt.Errorf("%s: %s has no body", positions.Position(d.Pos()), d.Name.Name))
				}
			}
		}
		config := types.Config{Sizes: sizes, IgnoreFuncBodies: !ours, Importer: importing(func(path string) (*types.Package, error) {
			if as, ok := p.ImportMap[path]; ok {
				path = as
			}
			if packages[path] == nil {
				return nil, fmt.Errorf("%s is not listed", path)
			}
			return packages[path], nil
		}), Error: func(err error) {
			if ours {
				problems = append(problems, err)
			}
		}}
		packages[p.ImportPath], _ = config.Check(p.ImportPath, positions, files, nil) // the errors are in problems
		if ours {
			checked++
		}
	}
}

// importing makes a function a types.Importer.
type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }
