package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// golden returns a plan of package transform's tests.
func golden(t testing.TB) []byte {
	t.Helper()
	js, err := os.ReadFile(filepath.Join("..", "testdata", "gpt2-tiny.plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func encoded(t testmodel.TB, p *plan.Plan) []byte {
	t.Helper()
	js, err := p.Encode()
	testmodel.OK(t, err)
	return js
}

func TestDecodeRefuses(t *testing.T) {
	js := string(golden(t))
	for name, c := range map[string]struct{ text, want string }{
		"nothing":       {"", "ends too early"},
		"cut short":     {js[:len(js)/2], "ends too early"},
		"unknown field": {strings.Replace(js, `"drop_in"`, `"drops_in"`, 1), `unknown field "drops_in"`},
		"two data":      {strings.Replace(js, `"round":{`, `"zeros":{},"round":{`, 1), `a step of pass "round" has two fields of data, "round" and "zeros"`},
		"both names":    {strings.Replace(js, `"signs":[`, `"flip":[],"signs":[`, 1), `a step of pass "signs" has two fields of data, "flip" and "signs"`},
		"version":       {strings.Replace(js, `"plan_version": 2`, `"plan_version": 4`, 1), "version 4, and this program reads versions 1 to 3"},
		"version 0":     {strings.Replace(js, `"plan_version": 2`, `"plan_version": 0`, 1), "it has no plan_version: give a file that lowtoggle plan has written"},
		"no pass":       {strings.Replace(js, `"pass":"round"`, `"passes":"round"`, 1), "a step names no pass"},
		"pass's type":   {strings.Replace(js, `"pass":"round"`, `"pass":3`, 1), "names no pass"},
		"neither":       {strings.Replace(js, `"index":"residual",`, ``, 1), "reorder: must name either an index or a tensor, and not both"},
		"both":          {strings.Replace(js, `"index":"residual",`, `"index":"residual","tensor":"a",`, 1), "reorder: must name either an index or a tensor, and not both"},
		"null step":     {strings.Replace(js, `"steps": [`, `"steps": [null,`, 1), "step 0: is null"},
		"two plans":     {js + js, "there is more text after the end"},
		"two braces":    {js + "}", "there is more text after the end"},
	} {
		if c.text == js {
			t.Errorf("%s: the test's replacement has no effect", name)
		}
		_, err := plan.Decode([]byte(c.text))
		if !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("%s: error %v is not of class ErrInvalid", name, err)
			continue
		}
		testmodel.WantError(t, err, c.want)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	testmodel.OK(t, os.WriteFile(path, []byte("[]"), 0o666))
	_, err := plan.Read(path)
	testmodel.WantError(t, err, path, "invalid plan")
}

// TestData: the data of a step is a value or its JSON. It is read completely or is an error.
func TestData(t *testing.T) {
	want := pass.Bits{Zeroed: 3, Truncate: true}
	for _, data := range []any{want, json.RawMessage(`{"zeroed":3,"truncate":true}`)} {
		if got, err := plan.Data[pass.Bits](&plan.Step{Pass: "round", Data: data}); got != want || err != nil {
			t.Errorf("%v is read as %+v, error %v", data, got, err)
		}
	}
	for data, want := range map[any]string{
		nil:                     "has no data",
		pass.Damping{Damp: 0.1}: "has data of type pass.Damping, not pass.Bits",
	} {
		_, err := plan.Data[pass.Bits](&plan.Step{Pass: "round", Data: data})
		testmodel.WantError(t, err, want)
	}
	for text, want := range map[string]string{
		`{"zeros":3}`:      `unknown field "zeros"`,
		`{"zeroed":2.5}`:   "cannot unmarshal",
		`{"zeroed":1e400}`: "cannot unmarshal",
		`[]`:               "cannot unmarshal",
	} {
		_, err := plan.Data[pass.Bits](&plan.Step{Pass: "round", Data: json.RawMessage(text)})
		testmodel.WantError(t, err, want)
	}
}

// TestStepOfAnyName: a step of a pass with any name can be written as JSON and read again.
func TestStepOfAnyName(t *testing.T) {
	for _, name := range []string{"sign\x7f", "a\"b", "\x01", "é\u2028"} {
		js, err := json.Marshal(&plan.Step{Pass: name, Tensor: "w", Data: json.RawMessage("[1]")})
		testmodel.OK(t, err)
		var again plan.Step
		testmodel.OK(t, json.Unmarshal(js, &again))
		if again.Pass != name || again.Tensor != "w" || again.Field != name {
			t.Errorf("%q is read again as %+v", name, again)
		}
	}
}

// TestDataHasTheNameOfItsPass: data under another name than the pass's is an error, unless the pass declares the name
// as a former one.
func TestDataHasTheNameOfItsPass(t *testing.T) {
	for field, want := range map[string]string{"order": "", "reorder": "", "orders": `pass "reorder" has no field "orders"`} {
		p, err := plan.Decode([]byte(`{"plan_version": 2, "drop_in": true, "steps": [{"pass": "reorder", "index": "a", "` + field + `": [1, 0]}]}`))
		testmodel.OK(t, err)
		got, err := plan.Data[[]int](p.Steps[0], "order")
		if want != "" {
			testmodel.WantError(t, err, want)
		} else if err != nil || len(got) != 2 {
			t.Errorf("%s: read as %v, error %v", field, got, err)
		}
		if _, err := plan.Data[[]int](p.Steps[0]); (err == nil) != (field == "reorder") {
			t.Errorf("%s: without a former name, error %v", field, err)
		}
	}
}

// TestVersion1: in plans of version 1, the data of four passes has other names.
func TestVersion1(t *testing.T) {
	p, err := plan.Decode([]byte(`{"plan_version": 1, "drop_in": true, "steps": [
		{"pass": "reorder", "index": "a", "order": [1, 0]},
		{"pass": "signs", "index": "a", "flip": [1]},
		{"pass": "scale", "index": "a", "exponents": [2, 3]},
		{"pass": "sparsify", "tensor": "b", "zeros": {"pattern": "2:4"}},
		{"pass": "round", "tensor": "b", "round": {"zeroed": 4}}]}`))
	testmodel.OK(t, err)
	for i, want := range []string{`[1, 0]`, `[1]`, `[2, 3]`, `{"pattern": "2:4"}`, `{"zeroed": 4}`} {
		if got, _ := p.Steps[i].Data.(json.RawMessage); string(got) != want {
			t.Errorf("the data of %s is %s, want %s", p.Steps[i].Pass, got, want)
		}
	}
}

func TestPlanIsForOneModel(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", 0)
	fp, err := plan.Fingerprint(m)
	testmodel.OK(t, err)
	p := &plan.Plan{Model: fp}
	folder := func(o synth.Options) *weights.Model {
		return testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "gpt2-tiny", ""), o))
	}
	for name, other := range map[string]*weights.Model{
		"another family": testmodel.Tiny(t, "llama-tiny", 0),
		"another type":   testmodel.Tiny(t, "gpt2-tiny", weights.F16),
		"another seed":   folder(synth.Options{Seed: 2}),
	} {
		if err := p.CheckModel(other); !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), other.Dir) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	testmodel.OK(t, p.CheckModel(folder(synth.Options{Seed: 1}))) // the folder's layout does not matter
}

func FuzzDecode(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"plan_version": 1, "drop_in": true, "steps": [{"pass": "round", "tensor": "a", "round": {"zeroed": 4}}]}`))
	f.Add([]byte(`{"plan_version": 1, "drop_in": true, "steps": [{"pass": "signs", "index": "a", "flip": [4]}]}`))
	f.Fuzz(func(t *testing.T, js []byte) {
		p, err := plan.Decode(js)
		if err != nil {
			if !errors.Is(err, plan.ErrInvalid) {
				t.Fatalf("error %v is not of class ErrInvalid", err)
			}
			return
		}
		first, err := p.Encode()
		if err != nil {
			return // an invalid workload
		}
		again, err := plan.Decode(first)
		testmodel.OK(t, err)
		if second := encoded(t, again); !bytes.Equal(first, second) {
			t.Fatalf("%s\n%s", first, second)
		}
	})
}
