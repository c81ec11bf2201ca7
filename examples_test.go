package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutExample has the packages for callers without an example, with reasons.
var withoutExample = map[string]string{
	"cost/nnls":           "one function, that the fit of the cost model calls",
	"gemm/collective":     "needs several GPUs",
	"gemm/cuda":           "needs a GPU",
	"gemm/cuda/rounder":   "needs a GPU",
	"gemm/cuda/runner":    "needs a GPU",
	"gemm/decoder":        "descriptions of models that gemm/forward runs",
	"gemm/divergence":     "called by gemm/evaluate and the search",
	"gemm/evaluate":       "transform.Tokens, which has an example, calls it",
	"gemm/forward":        "called by gemm/evaluate",
	"gemm/forward/vector": "kernels of gemm/forward",
	"gemm/hessian":        "called by gemm/evaluate",
	"gemm/profile/stitch": "called by gemm/profile",
	"gemm/serve":          "its example needs servers and a GPU, so it is compiled only",
	"gemm/sgemm":          "kernels of gemm/forward and transform/rounding",
	"transform/apply":     "a step of transform.Convert",
	"transform/card":      "a step of transform.Convert",
	"transform/order":     "numbers of transform/pass",
	"transform/pass":      "transform has the example of a pass",
	"transform/plan":      "transform has examples of plans",
	"transform/program":   "transform has the example of a pass",
	"transform/rounding":  "numbers of transform/pass and the search",
	"transform/search":    "a step of transform.Convert",
	"transform/verify":    "transform has the example of Verify",
}

// TestExamples checks that every package for callers has an Example with its output, or a reason.
func TestExamples(t *testing.T) {
	rows, err := packageRows()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range rows {
		top, _, _ := strings.Cut(folder, "/")
		if !slices.Contains([]string{"weights", "cost", "gemm", "transform"}, top) {
			continue
		}
		has, err := hasExample(folder)
		if err != nil {
			t.Fatal(err)
		}
		switch reason := withoutExample[folder]; {
		case has && reason != "":
			t.Errorf("%s has an example: remove it from the exceptions", folder)
		case !has && reason == "":
			t.Errorf("%s has no Example with an output: write one, or give the reason in withoutExample", folder)
		}
	}
	for folder := range withoutExample {
		if !slices.Contains(rows, folder) {
			t.Errorf("%s is no package", folder)
		}
	}
}

// packageRows returns the packages of the table in docs/packages.md.
func packageRows() (folders []string, err error) {
	data, err := os.ReadFile("docs/packages.md")
	if err != nil {
		return nil, err
	}
	rows, err := readRows(string(data))
	for _, r := range rows {
		folders = append(folders, r.folders...)
	}
	return folders, err
}

// hasExample reports whether a folder has an example that the go command runs: one with an output.
func hasExample(folder string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return false, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Example") {
				continue
			}
			for _, c := range f.Comments {
				if c.Pos() > fn.Pos() && c.End() < fn.End() && strings.HasPrefix(c.Text(), "Output:") {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
