package bounded

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// readers are the functions that read whole files or answers, with the fuzz target of what they read, or "–" and the
// reason why there is none.
var readers = map[string]string{
	"bench/experiment.Load":       "bench/experiment.FuzzSeries",
	"cli/card.recomputeProfile":   "– decoded into numbers, which profile.Recompute checks",
	"cli/flag.ReadFile":           "weights/arch.FuzzParse",
	"cost.ReadCalibration":        "cost.FuzzCalibration",
	"cost/component.MayReplace":   "cost/component.FuzzComponents",
	"cost/component.read":         "cost/component.FuzzComponents",
	"gemm/hessian.readIndex":      "gemm/hessian.FuzzIndex",
	"gemm/power.recall":           "– settings of a simulated card, for tests",
	"gemm/serve.beginning":        "– the start of an answer, shown in an error",
	"gemm/serve.findModel":        "– decoded into names, one of which is asked for",
	"internal/lock.try":           "– the holder's number, shown in an error",
	"transform.BaseModel":         "transform/card.FuzzWrite",
	"transform.readRecipe":        "transform.FuzzRecipe",
	"transform.resultRoom":        "– of the operating system",
	"transform/apply.begun":       "– decoded into a version, a plan's digest and a count, each compared",
	"transform/apply.check":       "– decoded into names, sizes and digests, each compared with a file's",
	"transform/apply.writeCard":   "transform/card.FuzzWrite",
	"transform/pass.givenOrders":  "– decoded into lists of numbers, each held against the layout",
	"transform/plan.Previous":     "transform/plan.FuzzManifest",
	"transform/plan.Read":         "transform/plan.FuzzDecode",
	"transform/plan.ReadManifest": "transform/plan.FuzzManifest",
	"transform/search.Load":       "transform/search.FuzzRecord",
	"transform/verify.sameCard":   "transform/card.FuzzWrite",
	"transform/verify.sameConfig": "– decoded into a map, which is compared",
	"weights.adapterAlone":        "weights.FuzzFolder",
	"weights.configsBeside":       "weights.FuzzFolder",
	"weights.indexesAny":          "– decoded into names, which are compared",
	"weights.openAdapter":         "weights.FuzzFolder",
	"weights.openFolder":          "weights.FuzzFolder",
	"weights.pipeline":            "weights.FuzzFolder",
	"weights.readIndex":           "weights.FuzzIndex",
	"weights/quant.readConfig":    "weights/quant.FuzzDescribe",
}

// TestReadersAreFuzzed finds the calls of this package's functions, [os.ReadFile] and [io.ReadAll] in the source. Each
// function with such a call needs a line above, and the fuzz target must be there.
func TestReadersAreFuzzed(t *testing.T) {
	root := filepath.Join("..", "..")
	targets := map[string]bool{}
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if d.IsDir() {
			if base := d.Name(); name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
		if err != nil {
			return err
		}
		tests := strings.HasSuffix(name, "_test.go") || file.Name.Name == "main" || strings.HasPrefix(dir, "bench") && dir != "bench/experiment" ||
			dir == "internal/testmodel" || dir == "internal/goldenfile" || dir == "internal/bounded" || dir == "cli/clitest"
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if strings.HasPrefix(f.Name.Name, "Fuzz") {
				targets[dir+"."+f.Name.Name] = true
			}
			if !tests && reads(f) {
				found = append(found, dir+"."+f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %q read files", found)
	}
	for _, f := range found {
		switch target := readers[f]; {
		case target == "":
			t.Errorf("%s reads a file: give what it reads a fuzz target, and list both here", f)
		case !strings.HasPrefix(target, "–") && !targets[target]:
			t.Errorf("%s: there is no target %s", f, target)
		}
	}
}

// reads reports whether a function reads a whole file or stream.
func reads(f *ast.FuncDecl) (yes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			if from, ok := call.X.(*ast.Ident); ok {
				switch from.Name + "." + call.Sel.Name {
				case "bounded.ReadFile", "os.ReadFile", "io.ReadAll":
					yes = true
				}
			}
		}
		return true
	})
	return yes
}
