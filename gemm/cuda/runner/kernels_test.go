package runner

import (
	"go/ast"
	"go/parser"
	"go/token"
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

// definedKernels are the number of parameters of each kernel in a source, by its name without element and head size.
func definedKernels(source string) map[string]int {
	kernels := map[string]int{}
	for _, m := range entryPoint.FindAllStringSubmatch(strings.ReplaceAll(source, "\\\n", " "), -1) {
		kernels[m[1]] = len(strings.Split(m[3], ","))
	}
	return kernels
}

// usedKernels reads Go code: the name of the kernel that each field holds, and the numbers of arguments of its launches.
type usedKernels struct {
	names    map[string]string
	launches map[string][]int
}

// baseName is a kernel's name without element and head size, of an expression that makes the name.
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

// field is the last name of a selector.
func field(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func (u usedKernels) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit: // {&k.embed, "embed" + t, 0}
		if len(n.Elts) != 3 {
			break
		}
		if to, ok := n.Elts[0].(*ast.UnaryExpr); ok && field(to.X) != "" {
			u.names[field(to.X)] = baseName(n.Elts[1])
		}
	case *ast.AssignStmt: // f.prefill, err = f.module.Function(...)
		if call, ok := n.Rhs[0].(*ast.CallExpr); ok && field(call.Fun) == "Function" && baseName(call.Args[0]) != "" {
			u.names[field(n.Lhs[0])] = baseName(call.Args[0])
		}
	case *ast.CallExpr: // p.kernels.embed.Launch(...)
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Launch" && field(s.X) != "" {
			u.launches[field(s.X)] = append(u.launches[field(s.X)], len(n.Args)-2)
		}
	}
	return true
}

// TestKernels: every kernel that the Go code asks for is defined, every launch passes as many arguments as the kernel
// has parameters, and every kernel that is defined is launched.
func TestKernels(t *testing.T) {
	used := usedKernels{map[string]string{}, map[string][]int{}}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, used.visit)
	}
	defined := definedKernels(source() + attentionSource)
	if len(defined) < 20 || len(used.names) < 20 {
		t.Fatalf("read %v in CUDA and %v in Go", defined, used.names)
	}
	launched := map[string]bool{}
	for field, arguments := range used.launches {
		name := used.names[field]
		launched[name] = true
		for _, n := range arguments {
			if parameters, ok := defined[name]; !ok || n != parameters {
				t.Errorf("%s is launched with %d arguments, kernel %q has %d parameters", field, n, name, parameters)
			}
		}
	}
	for field, name := range used.names {
		if defined[name] == 0 {
			t.Errorf("%s asks for kernel %q, which is not defined", field, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		if !launched[name] {
			t.Errorf("kernel %s is never launched", name)
		}
	}
}

// A kernel that is launched with the wrong number of arguments would read beyond them.
func TestKernelsComplains(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func f() {
	for _, f := range []struct{}{{&k.keep, "keep" + t, 0}} {}
	f.prefill, err = f.module.Function(fmt.Sprintf("attention_%s_%d", e, 1), 0)
	p.kernels.keep.Launch(a, b, 1, 2)
	f.prefill.Launch(a, b)
}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	used := usedKernels{map[string]string{}, map[string][]int{}}
	ast.Inspect(file, used.visit)
	if want := map[string]string{"keep": "keep", "prefill": "attention"}; !maps.Equal(used.names, want) {
		t.Errorf("kernels %v, want %v", used.names, want)
	}
	if want := map[string][]int{"keep": {2}, "prefill": {0}}; !maps.EqualFunc(used.launches, want, slices.Equal) {
		t.Errorf("arguments %v, want %v", used.launches, want)
	}
	got := definedKernels("#define DEFINE(name, T) \\\n\textern \"C\" __global__ void keep_##name(T *k, \\\n\t\tint n) { }\n" +
		"#define A(T, D) extern \"C\" __global__ void __launch_bounds__(8, 1) attention_##T##_##D(const int *a)")
	if want := map[string]int{"keep": 2, "attention": 1}; !maps.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}
