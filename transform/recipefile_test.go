package transform_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

func writeRecipe(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRecipeFile: YAML and JSON give the same recipe.
func TestRecipeFile(t *testing.T) {
	snr, loss := 31.0, 0.005
	want := transform.Recipe{Name: "mine", Doc: "d", Passes: "grid,round=3", InDecode: "scale=uncached", OnCodes: "scales", MinSNR: &snr, WithTokens: "trellis,compensate", MaxLoss: &loss,
		Selection: plan.Selection{Ignore: []string{"lm_head"}, Only: []string{"*.mlp.*", `re:.*\.[01]\.`}}, Routers: true, TrustFamily: true}
	for name, text := range map[string]string{
		"YAML": "# mine\nname: mine\ndoc: d\npasses: [grid, round=3]\nin_decode: scale=uncached\non_codes: scales\nmin_snr_db: 31\nwith_tokens:\n- trellis\n- compensate\n" +
			"max_loss: 0.5%\nignore: lm_head\nonly:\n  - '*.mlp.*'\n  - re:.*\\.[01]\\.\nrouters: true\ntrust_family: yes\n",
		"JSON": "{\n\t\"name\": \"mine\", \"doc\": \"d\", \"passes\": \"grid,round=3\",\t\"in_decode\": \"scale=uncached\", \"on_codes\": [\"scales\"], \"min_snr_db\": 31.0," +
			"\"with_tokens\": \"trellis,compensate\", \"max_loss\": 0.005, \"ignore\": [\"lm_head\"], \"only\": [\"*.mlp.*\", \"re:.*\\\\.[01]\\\\.\"], \"routers\": true, \"trust_family\": true}",
	} {
		got, err := transform.FindRecipe(writeRecipe(t, text))
		if name == "YAML" { // "yes" is YAML 1.1
			if err == nil || !strings.Contains(err.Error(), `mine.yaml:17: trust_family: is "yes": write true or false`) {
				t.Errorf("yes: %v", err)
			}
			got, err = transform.FindRecipe(writeRecipe(t, strings.Replace(text, ": yes", ": true", 1)))
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestRecipeFileErrors: errors name the file, the line and the field.
func TestRecipeFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      ":1: the file is empty",
		"# nothing\n":                           ":1: the file is empty",
		"passes: round=4\n\npases: grid\n":      ":3: pases: there is no such field (did you mean passes?): the fields are name, doc, passes",
		"doc: x\nmin_snr_db: 31\n":              ":1: passes: is missing",
		"passes: round=4\npasses: grid\n":       ":2: passes: occurs a second time",
		"passes:\n":                             ":1: passes: has no value",
		"passes: 5\n":                           ":1: passes: is the number 5: write passes as text, such as grid,round, or as a list",
		"passes: {a: b}\n":                      ":1: passes: is a group of fields",
		"passes:\n- round=4\n- 5\n":             ":2: passes: line 3 is the number 5",
		"passes: roundd=4\n":                    ":1: passes: ",
		"passes: round=4\nmin_snr_db: 300\n":    ":2: min_snr_db: is the number 300: write a number of decibels from 0 to 200",
		"passes: round=4\nmin_snr_db: .nan\n":   ":2: min_snr_db: ",
		"passes: round=4\nmin_snr_db: '31'\n":   `:2: min_snr_db: is "31"`,
		"passes: round=4\nmax_loss: 2\n":        ":2: max_loss: is the number 2: write a share",
		"passes: round=4\nmax_loss: 0\n":        ":2: max_loss: ",
		"passes: round=4\nmax_loss: '0.1'\n":    `:2: max_loss: is "0.1"`,
		"passes: round=4\nignore: 3\n":          ":2: ignore: is the number 3",
		"passes: round=4\nignore: 're:('\n":     `:2: ignore: pattern "re:("`,
		"passes: round=4\nmax_loss: 0.1%\n":     ":2: max_loss: needs with_tokens, the passes that spend this budget: add with_tokens: trellis,compensate",
		"passes: round=4\nrouters: 1\n":         ":2: routers: is the number 1: write true or false",
		"a: &a x\npasses: *a\n":                 ":1: a: there is no such field",
		"doc: &a x\npasses: *a\n":               ":1: doc: anchors and aliases are not supported",
		"passes: [&a round=4, *a]\n":            ":1: passes: anchors and aliases",
		"<<: {passes: round=4}\n":               ":1: <<: there is no such field",
		"passes: round=4\n---\npasses: grid\n":  "the file has a second document",
		"[1, 2]\n":                              "is not a list of fields",
		"passes: [round\n":                      "is not valid YAML",
		"passes:\tround=4\n  x: y\n":            "is not valid YAML",
		"quant_stage:\n  quant_modifiers: {}\n": "belongs to a recipe of llm-compressor",
		`{"passes": "round=4", "oops": 1}`:      ":1: oops: there is no such field",
		`{"passes": `:                           "is not valid YAML",
		"passes: \xff\n":                        "is not valid YAML",
		strings.Repeat("[", 20000):              "is not valid YAML",
		strings.Repeat("#", 1<<20+1):            "file is too large: lowtoggle reads at most 1 MiB",
	} {
		_, err := transform.FindRecipe(writeRecipe(t, text))
		if err == nil || !strings.Contains(err.Error(), "mine.yaml") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	bomb := "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\npasses: *c\n"
	if _, err := transform.FindRecipe(writeRecipe(t, bomb)); err == nil {
		t.Error("a bomb of aliases is read")
	}
}

// TestRecipesPage: the page's examples are valid recipes, and its table and the schema have every field.
func TestRecipesPage(t *testing.T) {
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```(?:yaml|json)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) < 4 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, e := range examples {
		if _, err := transform.FindRecipe(writeRecipe(t, e[1])); err != nil {
			t.Errorf("%s\n%v", e[1], err)
		}
	}
	js, err := os.ReadFile("../docs/schemas/recipe.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(js, &schema); err != nil {
		t.Fatal(err)
	}
	_, err = transform.FindRecipe(writeRecipe(t, "no_field: x\n"))
	_, list, _ := strings.Cut(err.Error(), "the fields are ")
	list, _, _ = strings.Cut(list, ";")
	fields := strings.Split(list, ", ")
	for _, f := range fields {
		if _, ok := schema.Properties[f]; !ok {
			t.Errorf("the schema lacks %s", f)
		}
		if !strings.Contains(string(page), "`"+f+"`") {
			t.Errorf("the page lacks %s", f)
		}
	}
	for f := range schema.Properties {
		if !slices.Contains(fields, f) {
			t.Errorf("the schema has the unknown field %s", f)
		}
	}
}
