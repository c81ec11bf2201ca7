package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// callers are the packages for Go programs, with the packages below them.
var callers = []string{"weights", "cost", "gemm", "transform", "bench/experiment"}

// mayPanic are functions and methods that may panic with nil or zero arguments, with the reason.
var mayPanic = map[string]string{
	"gemm/power.NewMonitor":         "it has no error to return, and a monitor without a card has nothing to watch",
	"cost/pattern.MustParse":        "for constant texts: Parse returns the error",
	"gemm.MaxOf":                    "a type without a format has no values: callers have its format, or check it",
	"gemm.NewMatrix":                "for a constant type: its comment says that others panic",
	"gemm/divergence.FromPass":      "its pass is that of forward.Decoder.Pass, which returns an error",
	"gemm/forward/vector.Maximum":   "a row without elements has no largest one; a kernel for loops over rows",
	"gemm/measure.Simulated":        "for options of power.DefaultSim: OpenSimulated returns the error",
	"gemm/operand.MustParse":        "for constant texts: Parse returns the error",
	"gemm/power.NewLiveSim":         "for options of DefaultSim: OpenSim returns the error",
	"gemm/power.NewSim":             "for options of DefaultSim: OpenSim returns the error",
	"transform/rounding.Codes.Code": "the code of an element, like indexing: Begin returns the errors of wrong parameters",
	"transform/verify.Result.Row":   "only package verify makes a Result, for the checks of passes",
	"weights/quant.Book.RoundScale": "reading a weight checks the type of its scales",
	"weights/quant.Place.Tensor":    "like indexing: places come from Group",
}

// TestZeroCalls calls every exported function and method that a Go program can reach with nil and zero arguments. They return errors or
// zero values and do not panic, except those in mayPanic.
func TestZeroCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program that links every package")
	}
	table, names, err := zeroCallTable()
	if err != nil {
		t.Fatal(err)
	}
	failed := runZeroCalls(t, table)
	for name, what := range failed {
		if mayPanic[name] == "" {
			t.Errorf("%s %s", name, what)
		}
	}
	for name := range mayPanic {
		switch {
		case !slices.Contains(names, name):
			t.Errorf("%s is no exported function or method: remove it from the exceptions", name)
		case failed[name] == "":
			t.Errorf("%s does not panic: remove it from the exceptions", name)
		}
	}
	t.Logf("%d functions and methods, %d exceptions", len(names), len(mayPanic))
}

// runZeroCalls compiles testdata/zerocalls with a table of functions and returns what happened, by name of a function.
func runZeroCalls(t *testing.T, table []byte) (failed map[string]string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "table.go")
	if err := os.WriteFile(file, table, 0o666); err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("testdata/zerocalls/table.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: file}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "zerocalls")
	if err := os.WriteFile(overlayFile, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-overlay", overlayFile, "-o", program, "./testdata/zerocalls").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir = run // files that calls with zero values write go there
	cmd.Env = append(os.Environ(), "TMPDIR="+run, "HOME="+run, "XDG_CACHE_HOME="+run)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	failed = map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), "\t")
		failed[name] = what
	}
	if err != nil {
		text := stderr.String()
		t.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	return failed
}

// zeroCallTable returns the table of testdata/zerocalls: every exported function and method of the packages for callers.
func zeroCallTable() (table []byte, names []string, err error) {
	packages, err := callersPackages()
	if err != nil {
		return nil, nil, err
	}
	made := madeTypes(packages)
	var imports, functions, methods strings.Builder
	for _, p := range packages {
		folder := strings.TrimPrefix(p.Path(), modulePath)
		alias := strings.ReplaceAll(folder, "/", "_")
		used := false
		for _, name := range p.Scope().Names() {
			object := p.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			switch object := object.(type) {
			case *types.Func:
				full := folder + "." + name
				fmt.Fprintf(&functions, "\t{%q, %s.%s%s},\n", full, alias, name, instance(object.Signature().TypeParams()))
				names, used = append(names, full), true
			case *types.TypeName:
				named, ok := object.Type().(*types.Named)
				if !ok || object.IsAlias() || types.IsInterface(named) {
					continue
				}
				for _, m := range methodsOf(named) {
					full := folder + "." + name + "." + m
					fmt.Fprintf(&methods, "\t{%q, reflect.TypeFor[*%s.%s%s](), %q, %v},\n", full, alias, name, instance(named.TypeParams()), m, literal(named) && !made[named.Obj()])
					names, used = append(names, full), true
				}
			}
		}
		if used {
			fmt.Fprintf(&imports, "\t%s %q\n", alias, p.Path())
		}
	}
	return fmt.Appendf(nil, "package main\n\nimport (\n\t\"reflect\"\n\n%s)\n\nvar functions = []function{\n%s}\n\nvar methods = []method{\n%s}\n",
		&imports, &functions, &methods), names, nil
}

// callersPackages loads the packages for callers from the go command's export data.
func callersPackages() (packages []*types.Package, err error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, c := range callers {
		args = append(args, "./"+c+"/...")
	}
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	var paths []string
	for line := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = export
		if folder, ours := strings.CutPrefix(path, modulePath); ours && !strings.HasPrefix(folder, "internal/") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	i := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range paths {
		p, err := i.Import(path)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// madeTypes returns the types that exported functions and methods return. A caller gets their values from these functions alone.
func madeTypes(packages []*types.Package) map[*types.TypeName]bool {
	made := map[*types.TypeName]bool{}
	add := func(f *types.Func) {
		if f.Exported() && f.Signature().Results().Len() > 0 {
			t := f.Signature().Results().At(0).Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			if n, ok := t.(*types.Named); ok {
				made[n.Origin().Obj()] = true
			}
		}
	}
	for _, p := range packages {
		for _, name := range p.Scope().Names() {
			switch object := p.Scope().Lookup(name).(type) {
			case *types.Func:
				add(object)
			case *types.TypeName:
				if named, ok := object.Type().(*types.Named); ok {
					for m := range named.Methods() {
						add(m)
					}
				}
			}
		}
	}
	return made
}

// methodsOf returns the names of a type's own exported methods.
func methodsOf(named *types.Named) (names []string) {
	set := types.NewMethodSet(types.NewPointer(named))
	for i := range set.Len() {
		if m := set.At(i); m.Obj().Exported() && len(m.Index()) == 1 {
			names = append(names, m.Obj().Name())
		}
	}
	return names
}

// literal reports whether a caller can make a useful value of a type without a constructor: it has exported fields, or is no struct.
func literal(named *types.Named) bool {
	s, ok := named.Underlying().(*types.Struct)
	if !ok {
		return true
	}
	for f := range s.Fields() {
		if f.Exported() {
			return true
		}
	}
	return false
}

// instance are type arguments for type parameters: the first type of each constraint, or int.
func instance(params *types.TypeParamList) string {
	var words []string
	for p := range params.TypeParams() {
		words = append(words, firstType(p.Constraint()))
	}
	if words == nil {
		return ""
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func firstType(constraint types.Type) string {
	switch c := constraint.Underlying().(type) {
	case *types.Interface:
		for e := range c.EmbeddedTypes() {
			return firstType(e)
		}
	case *types.Union:
		return c.Term(0).Type().String()
	}
	return "int"
}
