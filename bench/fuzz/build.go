package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	modulePath  = "github.com/lowtoggle/lowtoggle"
	listName    = "targets.json" // in the folder of the programs
	treeName    = "tree"         // in the folder of the programs: the module's folders with the files that targets read
	programName = "fuzz.test"    // in a package's folder
)

// target is a fuzz target of a package, whose folder is relative to the module's.
type target struct {
	Package string `json:"package"`
	Name    string `json:"name"`
}

func (t target) String() string { return t.Package + "." + t.Name }

// build writes to a folder: the programs of the matching targets, the files that they read as seeds, their list, and this command.
func build(ctx context.Context, folder string, match *regexp.Regexp) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	root, err := moduleFolder(ctx)
	if err != nil {
		return err
	}
	list, err := inSource(ctx, root, match)
	if err != nil {
		return err
	}
	tree := filepath.Join(folder, treeName)
	var packages []string
	for _, t := range list {
		if p := "./" + t.Package; !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
	}
	// One command builds all packages. It does not use the flag -fuzz, which also instruments the standard library: this takes
	// longer to compile and to run, and finds inputs that are new only to the library.
	made := filepath.Join(folder, "made")
	args := []string{"test", "-c", "-vet=off", "-trimpath", "-gcflags=" + modulePath + "/...=-d=libfuzzer", "-ldflags=-s -w", "-o", made + string(filepath.Separator)}
	if _, err := goTool(ctx, root, append(args, packages...)...); err != nil {
		return err
	}
	for _, p := range packages {
		to := filepath.Join(tree, filepath.FromSlash(p))
		if err := os.MkdirAll(to, 0o777); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(made, path.Base(p)+".test"), filepath.Join(to, programName)); err != nil {
			return err
		}
	}
	if err := os.Remove(made); err != nil {
		return err
	}
	if err := copySeeds(root, tree); err != nil {
		return err
	}
	if _, err := goTool(ctx, root, "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(folder, "fuzz"), "./bench/fuzz"); err != nil {
		return err
	}
	js, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, listName), append(js, '\n'), 0o666)
}

// copySeeds copies the files that targets read as seeds: the checkout's JSON files, and earlier failing inputs, which Go keeps in
// testdata/fuzz.
func copySeeds(root, tree string) error {
	return fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || path.Ext(name) != ".json" && !strings.Contains(name, "testdata/fuzz/"):
			return nil
		}
		to := filepath.Join(tree, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o666)
	})
}

// moduleFolder returns the root of the checkout that the command runs in.
func moduleFolder(ctx context.Context) (string, error) {
	out, err := goTool(ctx, "", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if err != nil {
		return "", err
	}
	name, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if name != modulePath {
		return "", fmt.Errorf("this folder belongs to the module %s; run this command in a checkout of %s, or give -folder", name, modulePath)
	}
	return dir, nil
}

// inSource lists the fuzz targets in the packages' source.
func inSource(ctx context.Context, root string, match *regexp.Regexp) (list []target, err error) {
	out, err := goTool(ctx, root, "list", "-f", `{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		pkg, file, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range declaration.FindAllSubmatch(text, -1) {
			t := target{strings.TrimPrefix(strings.TrimPrefix(pkg, modulePath), "/"), string(m[1])}
			if match.MatchString(t.String()) {
				list = append(list, t)
			}
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no fuzz target matches")
	}
	return list, lines.Err()
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// targets returns the matching targets of a built folder.
func targets(folder string, match *regexp.Regexp) (list []target, err error) {
	js, err := os.ReadFile(filepath.Join(folder, listName))
	if err != nil {
		return nil, err
	}
	var all []target
	if err := json.Unmarshal(js, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(folder, listName), err)
	}
	for _, t := range all {
		if match.MatchString(t.String()) {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no fuzz target in %s matches", folder)
	}
	return list, nil
}

// goTool runs the go command in a folder, without cgo, and returns its output.
func goTool(ctx context.Context, folder string, args ...string) ([]byte, error) {
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &out, &messages
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, bytes.TrimSpace(messages.Bytes()))
	}
	return out.Bytes(), nil
}
