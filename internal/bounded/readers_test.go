package bounded

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readers are the functions that read or decode whole files or answers, with the fuzz target for the content. "–" and
// a reason stand for no fuzz target.
var readers = map[string]string{
	"bench/experiment.Load":             "bench/experiment.FuzzSeries",
	"bench/experiment.decode":           "bench/experiment.FuzzSeries",
	"bench/probe.readKept":              "– decoded into numbers of this program's own file",
	"bench/probe.readTable":             "bench/probe.FuzzTable",
	"cli/card.recomputeProfile":         "gemm/profile.FuzzResult",
	"cli/card.checkCalibrationFile":     "cost.FuzzCalibration",
	"cli/flag.ReadFile":                 "weights/arch.FuzzParse",
	"cli/flag.ReadPlace":                "weights/arch.FuzzParse",
	"cli/model.isNoPlan":                "– decoded into names after transform/plan.FuzzDecode's reader has refused the file",
	"cli/model.resultsOf":               "– decoded into fields, of which one name is shown",
	"cost.ReadCalibration":              "cost.FuzzCalibration",
	"cost.UnmarshalJSON":                "cost.FuzzCalibration",
	"cost.decodeCalibration":            "cost.FuzzCalibration",
	"cost/component.MayReplace":         "cost/component.FuzzComponents",
	"cost/component.decode":             "cost/component.FuzzComponents",
	"cost/component.read":               "cost/component.FuzzComponents",
	"gemm/decoder.readConfig":           "gemm/decoder.FuzzNew",
	"gemm/hessian.readIndex":            "gemm/hessian.FuzzIndex",
	"gemm/hessian.readTriangle":         "gemm/hessian.FuzzTriangle",
	"gemm/power.UnmarshalJSON":          "cost.FuzzCalibration",
	"gemm/power.recall":                 "– settings of a simulated card, for tests",
	"gemm/profile/stitch.UnmarshalJSON": "gemm/profile.FuzzResult",
	"gemm/serve.ReadPrompts":            "gemm/serve.FuzzPrompts",
	"gemm/serve.UnmarshalJSON":          "gemm/serve.FuzzPrompts",
	"gemm/serve.beginning":              "– the start of an answer, shown in an error",
	"gemm/serve.errorText":              "gemm/serve.FuzzEvents",
	"gemm/serve.findModel":              "– decoded into names, one of which is asked for",
	"gemm/serve.newEvents":              "gemm/serve.FuzzEvents",
	"gemm/serve.parseChunk":             "gemm/serve.FuzzEvents",
	"gemm/sweep.RestoreLeft":            "– this program's own note of a card's settings, on the same machine",
	"gemm/sweep.ServeWatchdog":          "– lines from the process that started it",
	"gemm/sweep.bootID":                 "– of the operating system",
	"gemm/sweep.startWatchdog":          "– lines from the process that it started",
	"internal/fakestore.ServeHTTP":      "– a server for tests",
	"internal/lock.try":                 "– the holder's number, shown in an error",
	"internal/recordfile.Read":          "– this project's own records",
	"internal/strictjson.missing":       "cost.FuzzCalibration",
	"transform.BaseModel":               "transform/card.FuzzWrite",
	"transform.ReadPlan":                "transform/plan.FuzzDecode",
	"transform.decode":                  "transform.FuzzRecipe",
	"transform.readRecipe":              "transform.FuzzRecipe",
	"transform.resultRoom":              "– of the operating system",
	"transform/apply.Unfinished":        "transform/plan.FuzzDecode",
	"transform/apply.UnfinishedIn":      "transform/plan.FuzzDecode",
	"transform/apply.add":               "transform/apply.FuzzJournal",
	"transform/apply.check":             "transform/apply.FuzzPart",
	"transform/apply.read":              "transform/apply.FuzzPart",
	"transform/apply.readJournal":       "transform/apply.FuzzJournal",
	"transform/apply.was":               "transform/apply.FuzzPart",
	"transform/card.BaseOf":             "transform/card.FuzzWrite",
	"transform/card.fields":             "transform/card.FuzzWrite",
	"transform/pass.givenOrders":        "– decoded into lists of numbers, each held against the layout",
	"transform/plan.Data":               "transform/plan.FuzzDecode",
	"transform/plan.Decode":             "transform/plan.FuzzDecode",
	"transform/plan.DecodeManifest":     "transform/plan.FuzzManifest",
	"transform/plan.Read":               "transform/plan.FuzzDecode",
	"transform/plan.ReadManifest":       "transform/plan.FuzzManifest",
	"transform/plan.ReadPartial":        "transform/plan.FuzzPartial",
	"transform/plan.UnmarshalJSON":      "transform/plan.FuzzDecode",
	"transform/plan.decodePartial":      "transform/plan.FuzzPartial",
	"transform/plan.decodePlain":        "transform/plan.FuzzDecode",
	"transform/plan.unpack":             "transform/plan.FuzzDecode",
	"transform/search.Claim":            "transform/search.FuzzRecord",
	"transform/search.Load":             "transform/search.FuzzRecord",
	"transform/verify.sameConfig":       "– decoded into a map, which is compared",
	"weights.adapterAlone":              "weights.FuzzFolder",
	"weights.indexesAny":                "– decoded into names, which are compared",
	"weights.newWalker":                 "weights.FuzzOpen",
	"weights.pipeline":                  "weights.FuzzFolder",
	"weights.read":                      "weights.FuzzFolder",
	"weights.reader":                    "weights.FuzzFolder",
	"weights.whole":                     "weights.FuzzIndex",
	"weights/arch.CustomCode":           "weights/arch.FuzzResolve",
	"weights/arch.UnmarshalJSON":        "weights/arch.FuzzParse",
	"weights/arch.decode":               "weights/arch.FuzzParse",
	"weights/bucket.list":               "weights/bucket.FuzzBlobList",
	"weights/quant.mainConfig":          "weights/quant.FuzzDescribe",
	"weights/quant.parseObject":         "weights/quant.FuzzDescribe",
	"weights/quantise.objectOf":         "weights/quantise.FuzzConfig",
	"weights/synth.withDType":           "– decoded into fields, one of which is replaced",
}

// TestReadersAreFuzzed finds the calls of this package's functions, of [os.ReadFile] and [io.ReadAll], and of
// decoders of JSON, YAML, CSV and lines in the source. Each function with such a call needs a line above, and its
// fuzz target must exist. Lines of missing functions are reported.
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
		tests := strings.HasSuffix(name, "_test.go") || file.Name.Name == "main" || strings.HasPrefix(dir, "bench") && dir != "bench/experiment" && dir != "bench/probe" && dir != "bench/paper" ||
			dir == "internal/testmodel" || dir == "internal/reference" || dir == "internal/goldenfile" || dir == "internal/bounded" || dir == "internal/testplan" || dir == "cli/clitest"
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
	for f := range readers {
		if !slices.Contains(found, f) {
			t.Errorf("%s reads no file: remove its line", f)
		}
	}
	for _, f := range found {
		switch target := readers[f]; {
		case target == "":
			t.Errorf("%s reads a file: add a fuzz target for the content, and list both here", f)
		case !strings.HasPrefix(target, "–") && !targets[target]:
			t.Errorf("%s: no fuzz target %s", f, target)
		}
	}
}

// reads reports whether a function reads or decodes a whole file or stream.
func reads(f *ast.FuncDecl) (yes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			if from, ok := call.X.(*ast.Ident); ok {
				switch from.Name + "." + call.Sel.Name {
				case "bounded.ReadFile", "os.ReadFile", "io.ReadAll", "json.Unmarshal", "json.NewDecoder", "yaml.Unmarshal", "yaml.NewDecoder",
					"csv.NewReader", "bufio.NewScanner", "bufio.NewReader", "bufio.NewReaderSize", "strictjson.Check", "strictjson.Missing":
					yes = true
				}
			}
		}
		return true
	})
	return yes
}
