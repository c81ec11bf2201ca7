package runner

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// entryPoint matches a kernel's definition. What follows ## in its name is a macro's parameter.
var entryPoint = regexp.MustCompile(`extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+?)((?:_?##\w+)*)\(([^)]*)\)`)

// definedKernels returns the Go types of the parameters of each kernel in a source, by its name without element and head
// size.
func definedKernels(source string) map[string][]string {
	kernels := map[string][]string{}
	for _, m := range entryPoint.FindAllStringSubmatch(strings.ReplaceAll(source, "\\\n", " "), -1) {
		var parameters []string
		for p := range strings.SplitSeq(m[3], ",") {
			kind, _, _ := strings.Cut(strings.TrimSpace(p), " ")
			if strings.Contains(p, "*") {
				kind = "*"
			}
			parameters = append(parameters, map[string]string{"*": "Address", "int": "int", "float": "float32", "double": "float64"}[kind])
		}
		kernels[m[1]] = parameters
	}
	return kernels
}

// packages checks packages of this module, and only them: what the standard library declares has no type.
type packages struct {
	files   *token.FileSet
	info    *types.Info
	checked map[string]*types.Package
}

func newPackages() packages {
	return packages{token.NewFileSet(), &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}, map[string]*types.Package{}}
}

// Import implements types.Importer.
func (p packages) Import(path string) (*types.Package, error) {
	if p.checked[path] != nil {
		return p.checked[path], nil
	}
	if folder, ok := strings.CutPrefix(path, "github.com/lowtoggle/lowtoggle/"); ok {
		files, err := p.parse("../../../" + folder)
		if err != nil {
			return nil, err
		}
		p.checked[path] = p.check(path, files, nil)
	} else {
		p.checked[path] = types.NewPackage(path, filepath.Base(path))
		p.checked[path].MarkComplete()
	}
	return p.checked[path], nil
}

// check checks a package's declarations, and its functions' bodies if info is set.
func (p packages) check(path string, files []*ast.File, info *types.Info) *types.Package {
	c := types.Config{Importer: p, IgnoreFuncBodies: info == nil, Error: func(error) {}} // of names of the standard library
	checked, _ := c.Check(path, p.files, files, info)
	return checked
}

// parse reads a folder's files, without tests.
func (p packages) parse(folder string) (files []*ast.File, err error) {
	paths, err := filepath.Glob(folder + "/*.go")
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.files, path, nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, err
}

// usedKernels reads Go code: the name of the kernel that each field holds, and the types of the arguments of its
// launches.
type usedKernels struct {
	info     *types.Info
	names    map[string]string
	launches map[string][][]string
}

func (p packages) kernels(files []*ast.File) usedKernels {
	p.check("runner", files, p.info)
	used := usedKernels{p.info, map[string]string{}, map[string][][]string{}}
	for _, file := range files {
		ast.Inspect(file, used.visit)
	}
	return used
}

// baseName returns a kernel's name without element and head size, of an expression that makes the name.
func baseName(e ast.Expr) (name string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && name == "" {
			name, _ = strconv.Unquote(l.Value)
			name, _, _ = strings.Cut(name, "_%")
		}
		return true
	})
	return name
}

// field returns the last name of a selector.
func field(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func (u usedKernels) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit: // {&k.embed, "embed" + t, 0}
		if len(n.Elts) < 2 {
			break
		}
		if to, ok := n.Elts[0].(*ast.UnaryExpr); ok && field(to.X) != "" && baseName(n.Elts[1]) != "" {
			u.names[field(to.X)] = baseName(n.Elts[1])
		}
	case *ast.AssignStmt: // f.prefill, err = f.module.Function(...)
		if call, ok := n.Rhs[0].(*ast.CallExpr); ok && field(call.Fun) == "Function" && baseName(call.Args[0]) != "" {
			u.names[field(n.Lhs[0])] = baseName(call.Args[0])
		}
	case *ast.CallExpr: // p.kernels.embed.Launch(...)
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Launch" && field(s.X) != "" {
			arguments := []string{}
			for _, a := range n.Args[2:] {
				arguments = append(arguments, types.TypeString(u.info.TypeOf(a), func(*types.Package) string { return "" }))
			}
			u.launches[field(s.X)] = append(u.launches[field(s.X)], arguments)
		}
	}
	return true
}

// TestKernels: every kernel that the Go code asks for is defined, every launch passes arguments of the types of the
// kernel's parameters, and every kernel that is defined is launched. CUDA does not check this at run time.
func TestKernels(t *testing.T) {
	p := newPackages()
	files, err := p.parse(".")
	if err != nil {
		t.Fatal(err)
	}
	used := p.kernels(files)
	defined := definedKernels(source() + attentionSource + gramSource)
	if len(defined) < 20 || len(used.names) < 20 {
		t.Fatalf("read %v in CUDA and %v in Go", defined, used.names)
	}
	launched := map[string]bool{}
	for field, launches := range used.launches {
		name := used.names[field]
		launched[name] = true
		for _, arguments := range launches {
			if !slices.Equal(arguments, defined[name]) {
				t.Errorf("%s is launched with\n%v, kernel %q has\n%v", field, arguments, name, defined[name])
			}
		}
	}
	for field, name := range used.names {
		if defined[name] == nil {
			t.Errorf("%s asks for kernel %q, which is not defined", field, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		if !launched[name] {
			t.Errorf("kernel %s is never launched", name)
		}
	}
}

// TestKernelsAreRead checks that TestKernels finds kernels in both languages.
func TestKernelsAreRead(t *testing.T) {
	p := newPackages()
	file, err := parser.ParseFile(p.files, "x.go", `package x
import "github.com/lowtoggle/lowtoggle/gemm/cuda"
type x struct { keep, prefill *cuda.Function; n int; at cuda.Address; scale float32 }
func f(k, p, f x) {
	for _, f := range []struct{to **cuda.Function; name string; shared int}{{&k.keep, "keep" + t, 0}} {}
	f.prefill, err = f.module.Function(fmt.Sprintf("attention_%s_%d", e, 1), 0)
	p.keep.Launch(cuda.Grid{}, cuda.Grid{}, p.at.Plus(4*p.n), p.n+1, float32(2), p.scale, 1.5)
	f.prefill.Launch(cuda.Grid{}, cuda.Grid{})
}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	used := p.kernels([]*ast.File{file})
	if want := map[string]string{"keep": "keep", "prefill": "attention"}; !maps.Equal(used.names, want) {
		t.Errorf("kernels %v, want %v", used.names, want)
	}
	if got, want := used.launches["keep"], []string{"Address", "int", "float32", "float32", "float64"}; len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("arguments %v, want %v", got, want)
	}
	if got := used.launches["prefill"]; len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("arguments %v, want none", got)
	}
	got := definedKernels("#define DEFINE(name, T) \\\n\textern \"C\" __global__ void keep_##name(T *k, \\\n\t\tint n, float s, double d) { }\n" +
		"#define A(T, D) extern \"C\" __global__ void __launch_bounds__(8, 1) attention_##T##_##D(const int *a)")
	if want := map[string][]string{"keep": {"Address", "int", "float32", "float64"}, "attention": {"Address"}}; !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("read %v, want %v", got, want)
	}
}
