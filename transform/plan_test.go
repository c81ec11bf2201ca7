package transform_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

const everything = "scale,reorder,signs,shift,sparsify=0.2,grid=16,round=2"

func TestPlanRoundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
		for passes, least := range map[string]float64{everything: 0, "": 0, "scale,shift=4/epilogue,sparsify,grid,round": 25} {
			js := testplan.Encoded(t, testplan.Make(t, testmodel.Tiny(t, model, 0), passes, least))
			p, err := plan.Decode(js)
			testmodel.OK(t, err)
			if again := testplan.Encoded(t, p); !bytes.Equal(again, js) {
				t.Errorf("%s %s: another plan after reading:\n%s\n%s", model, passes, js, again)
			}
			line, err := json.Marshal(p) // as stored in the journal
			testmodel.OK(t, err)
			p, err = plan.Decode(line)
			testmodel.OK(t, err)
			if again := testplan.Encoded(t, p); !bytes.Equal(again, js) {
				t.Errorf("%s %s: another plan after the journal", model, passes)
			}
		}
	}
}

func goldenModel(t *testing.T) *weights.Model {
	t.Helper()
	return testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "gpt2-tiny", `{"n_embd": 20, "vocab_size": 32, "n_layer": 1}`), synth.Options{Seed: 7}))
}

func TestGoldenPlan(t *testing.T) {
	m := goldenModel(t)
	goldenfile.Same(t, filepath.Join("testdata", "gpt2-tiny.plan.json"), testplan.Encoded(t, testplan.Make(t, m, everything, 0)))
}

// TestPlanOfVersion1: a plan of version 1 gives the bytes of the program that wrote it.
func TestPlanOfVersion1(t *testing.T) {
	m := goldenModel(t)
	path := filepath.Join("testdata", "gpt2-tiny.version1.plan.json")
	p, err := transform.Passes.ReadPlan(path)
	testmodel.OK(t, err)
	js, err := os.ReadFile(path)
	testmodel.OK(t, err)
	if !bytes.Contains(js, []byte(`"plan_version": 1,`)) || len(p.Steps) < 20 {
		t.Fatalf("%s is not of version 1, or has %d steps alone", path, len(p.Steps))
	}
	again := testplan.Encoded(t, p)
	if !bytes.Contains(again, []byte(`"plan_version": 2,`)) {
		t.Errorf("the plan has the form of version 2 and the version %d", p.Version)
	}
	if _, err := plan.Decode(again); err != nil {
		t.Errorf("the plan cannot be read back: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(testplan.Applied(t, m, nil, p), "model.safetensors"))
	testmodel.OK(t, err)
	const want = "bb457bee688648ec47b0bedb31bd3ac53dc4f3de6a62ca08aed50ea849b00eb8"
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
		t.Errorf("the result's SHA-256 is %x, want %s", sum, want)
	}
}

func TestPlansThatNoPassWrites(t *testing.T) {
	m := testmodel.Tiny(t, "gpt2-tiny", 0)
	js := string(testplan.Encoded(t, testplan.Make(t, m, "reorder,round=2", 0)))
	for name, c := range map[string]struct{ text, want string }{
		"unknown inside": {strings.Replace(js, `"zeroed"`, `"zeros"`, 1), "round: tensor "},
		"pass":           {strings.ReplaceAll(strings.Replace(js, `"pass":"round"`, `"pass":"floor"`, 1), `"round":{`, `"floor":{`), `"floor"`},
		"misspelt":       {strings.ReplaceAll(strings.Replace(js, `"pass":"round"`, `"pass":"ruond"`, 1), `"round":{`, `"ruond":{`), `there is no pass "ruond" (did you mean round?); the passes are scale, `},
		"misspelt alone": {strings.Replace(js, `"pass":"round"`, `"pass":"ruond"`, 1), `there is no pass "ruond" (did you mean round?)`},
		"field":          {strings.Replace(js, `"round":{`, `"rounds":{`, 1), `pass "round" has no field "rounds"`},
		"another's":      {strings.Replace(js, `"round":{`, `"order":{`, 1), `pass "round" has no field "order"`},
		"index":          {strings.Replace(js, `"index":`, `"tensor":`, 1), "step 0: reorder acts on an index, and the step names none"},
		"tensor":         {strings.Replace(js, `"pass":"reorder"`, `"pass":"round"`, 1), "round"},
		"fraction":       {strings.Replace(js, `"zeroed":2`, `"zeroed":2.5`, 1), "round: tensor "},
		"huge":           {strings.Replace(js, `"zeroed":2`, `"zeroed":1e400`, 1), "round: tensor "},
		"drop-in":        {strings.Replace(js, `"drop_in": true`, `"drop_in": false`, 1), `"drop_in": false, but its steps say the opposite`},
	} {
		out := filepath.Join(t.TempDir(), "out")
		p, err := plan.Decode([]byte(c.text))
		if err == nil {
			_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
		}
		if !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("%s: error %v is not of class ErrInvalid", name, err)
			continue
		}
		testmodel.WantError(t, err, c.want)
		testplan.NothingAt(t, out)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	testmodel.OK(t, os.WriteFile(path, []byte(`{"plan_version": 2, "drop_in": true, "steps": [{"pass": "floor", "tensor": "a"}]}`), 0o666))
	_, err := transform.Passes.ReadPlan(path)
	testmodel.WantError(t, err, path, "invalid plan", `there is no pass "floor"`)
	testmodel.OK(t, os.WriteFile(path, []byte(`{"plan_version": 2, "drop_in": true, "steps": [{"pass": "round", "index": "a"}]}`), 0o666))
	_, err = transform.Passes.ReadPlan(path)
	testmodel.WantError(t, err, "step 0: round acts on a tensor, and the step names none")
}

func TestPlanForAnotherModel(t *testing.T) {
	p := testplan.Make(t, testmodel.Tiny(t, "gpt2-tiny", 0), "round=2", 0)
	for name, other := range map[string]*weights.Model{
		"another family": testmodel.Tiny(t, "llama-tiny", 0),
		"another type":   testmodel.Tiny(t, "gpt2-tiny", weights.F16),
		"another seed":   testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "gpt2-tiny", ""), synth.Options{Seed: 2})),
	} {
		out := filepath.Join(t.TempDir(), "out")
		_, err := transform.Apply(t.Context(), other, p, out, transform.ApplyOptions{})
		if !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		testmodel.WantError(t, err, "it was made for another model", other.Dir)
		testplan.NothingAt(t, out)
	}
	// The folder's layout does not matter.
	one := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "gpt2-tiny", ""), synth.Options{Seed: 1}))
	testmodel.OK(t, p.CheckModel(one))
}

// snr recomputes a layer's signal-to-noise ratio without symmetries and shifts.
func snr(before, after weights.Tensor) float64 {
	var signal, noise float64
	b := testmodel.Values(after)
	for i, a := range testmodel.Values(before) {
		signal += a * a
		noise += (b[i] - a) * (b[i] - a)
	}
	return 10 * math.Log10(signal/noise)
}

func TestBudgetIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	rapid.Check(t, func(rt *rapid.T) {
		least := rapid.Float64Range(3, 60).Draw(rt, "least")
		passes := rapid.SampledFrom([]string{"grid,round", "round", "sparsify,round", "grid", "sparsify"}).Draw(rt, "passes")
		config := rapid.SampledFrom([]string{"llama-tiny", "gpt2-tiny"}).Draw(rt, "model")
		d := rapid.SampledFrom(testmodel.DTypes).Draw(rt, "type")
		m, err := weights.Open(budgetModel(t, config, d))
		testmodel.OK(rt, err)
		defer m.Close()
		p, err := transform.Plan(t.Context(), m, testplan.Options(t, passes, least))
		testmodel.OK(rt, err)
		tmp, err := os.MkdirTemp("", "budget")
		testmodel.OK(rt, err)
		defer os.RemoveAll(tmp)
		_, err = transform.Apply(t.Context(), m, p, filepath.Join(tmp, "out"), transform.ApplyOptions{})
		testmodel.OK(rt, err)
		result, err := weights.Open(filepath.Join(tmp, "out"))
		testmodel.OK(rt, err)
		defer result.Close()
		for _, o := range p.Predictions {
			got := snr(testmodel.TensorOf(rt, m, o.Tensor), testmodel.TensorOf(rt, result, o.Tensor))
			if got < least-1e-6 {
				rt.Fatalf("%s has %g dB", o.Tensor, got)
			}
			if o.SNR == nil != math.IsInf(got, 0) || o.SNR != nil && math.Abs(*o.SNR-got) > 1e-6 {
				rt.Fatalf("%s has %g dB, the plan says %v", o.Tensor, got, o.SNR)
			}
		}
	})
}

var budgetModels = map[string]string{}

func budgetModel(t *testing.T, name string, d weights.DType) string {
	key := name + d.String()
	if budgetModels[key] == "" {
		budgetModels[key] = testmodel.Folder(t, testmodel.Config(t, name, `{"n_layer": 1, "n_embd": 20, "num_hidden_layers": 1, "hidden_size": 24, "head_dim": 4, "intermediate_size": 40, "vocab_size": 32}`), synth.Options{DType: d})
	}
	return budgetModels[key]
}

func TestBudgetThatCannotBeMetIsMissed(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	p := testplan.Make(t, m, "round=7", 60)
	linears := 0
	testmodel.EachLinear(t, m, func(weights.Tensor, int) { linears++ })
	for _, o := range p.Predictions {
		if o.Missed != "round=7 would lower the output SNR below 60 dB" || o.SNR != nil {
			t.Errorf("%s: missed %q, %v dB", o.Tensor, o.Missed, o.SNR)
		}
	}
	if len(p.Steps) != 0 || len(p.Predictions) != linears {
		t.Errorf("%d steps, %d outlooks", len(p.Steps), len(p.Predictions))
	}
}

// TestBudgetLeavesAloneWhatDoesNotFit: passes that need an argument or a budget do not change layers in which no
// candidate fits.
func TestBudgetLeavesAloneWhatDoesNotFit(t *testing.T) {
	p := testplan.Make(t, testmodel.Tiny(t, "llama-tiny", 0), "grid,round", 150)
	if len(p.Steps) != 0 {
		t.Errorf("%d steps", len(p.Steps))
	}
	for _, o := range p.Predictions {
		if o.Missed != "" {
			t.Errorf("%s: missed %q without an explicit request", o.Tensor, o.Missed)
		}
	}
}

func TestWorkloadIsPrefillUnlessGiven(t *testing.T) {
	o := testplan.Options(t, "round=2", 0)
	o.Workload.Prefill, o.Workload.Decode = 0, 0
	p, err := transform.Plan(t.Context(), testmodel.Tiny(t, "llama-tiny", 0), o)
	testmodel.OK(t, err)
	if w := p.Request.Workload; w.Prefill != 1 || w.Decode != 0 {
		t.Errorf("workload %+v", w)
	}
	testplan.Encoded(t, p)
}

func TestReorderAsGiven(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	path := filepath.Join(t.TempDir(), "given.json")
	give := func(orders any) error {
		js, err := json.Marshal(orders)
		testmodel.OK(t, err)
		testmodel.OK(t, os.WriteFile(path, js, 0o666))
		p, err := transform.Plan(t.Context(), m, testplan.Options(t, "reorder=given/"+path, 0))
		if err == nil && len(p.Steps) != 1 {
			t.Errorf("%d steps", len(p.Steps))
		}
		return err
	}
	testmodel.OK(t, give(map[string][]int{"layers.1.kv": {1, 0}}))
	testmodel.WantError(t, give(map[string][]int{"layers.1.kv": {1, 1}}), path, "index layers.1.kv: the order is not a permutation of the numbers from 0 to 1")
	testmodel.WantError(t, give(map[string][]int{"layers.1.kv.0.pair": {0, 1, 2, 3, 5, 4}}), path, "index layers.1.kv.0.pair may not be permuted")
	testmodel.WantError(t, give(map[string][]int{"layers.9.kv": {1, 0}}), path, `the model has no index "layers.9.kv"`)
	testmodel.WantError(t, give([]int{1}), path, "cannot unmarshal")
	_, err := transform.Plan(t.Context(), m, testplan.Options(t, "reorder=given/nowhere.json", 0))
	testmodel.WantError(t, err, "nowhere.json")
}

// hostile returns single steps for llama-tiny that no planner would write.
func hostile() []*plan.Step {
	const q, up = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.up_proj.weight"
	huge := 1 << 40
	return []*plan.Step{
		{Pass: "reorder", Index: "layers.0.ffn"},
		{Pass: "reorder", Index: "layers.0.ffn", Data: []int{0, 1}},
		{Pass: "reorder", Index: "layers.0.kv", Data: []int{0, 0}},
		{Pass: "reorder", Index: "layers.0.kv", Data: []int{0, 2}},
		{Pass: "reorder", Index: "layers.0.kv", Data: []int{-1, 0}},
		{Pass: "reorder", Index: "layers.0.kv", Data: []int{huge, 0}},
		{Pass: "reorder", Index: "layers.0.kv.0.pair", Data: []int{0, 1, 2, 3, 4, 5}},
		{Pass: "reorder", Index: "layers.7.kv", Data: []int{1, 0}},
		{Pass: "signs", Index: "layers.0.ffn", Data: []int{100}},
		{Pass: "signs", Index: "layers.0.ffn", Data: []int{-1}},
		{Pass: "signs", Index: "layers.0.ffn", Data: []int{3, 2}},
		{Pass: "signs", Index: "layers.0.ffn", Data: []int{3, 3}},
		{Pass: "signs", Index: "layers.0.kv", Data: []int{0}},
		{Pass: "scale", Index: "layers.0.kv.0.v", Data: []int{1}},
		{Pass: "scale", Index: "layers.0.kv.0.v", Data: append(make([]int, 11), huge)},
		{Pass: "scale", Index: "layers.0.kv.0.v", Data: append(make([]int, 11), 400)},
		{Pass: "scale", Index: "layers.0.kv.0.v", Data: append(make([]int, 11), -999)},
		{Pass: "scale", Index: "residual", Data: make([]int, 48)},
		{Pass: "grid", Tensor: q},
		{Pass: "grid", Tensor: q, Data: pass.Steps{Exponents: []int{1}}},
		{Pass: "grid", Tensor: q, Data: pass.Steps{Exponents: append(make([]int, 71), huge)}},
		{Pass: "round", Tensor: q},
		{Pass: "round", Tensor: q, Data: pass.Bits{Zeroed: 8}},
		{Pass: "round", Tensor: q, Data: pass.Bits{Zeroed: -1}},
		{Pass: "round", Tensor: "nobody", Data: pass.Bits{Zeroed: 1}},
		{Pass: "sparsify", Tensor: q},
		{Pass: "sparsify", Tensor: q, Data: pass.Zeros{}},
		{Pass: "sparsify", Tensor: q, Data: pass.Zeros{Pattern: "1:4"}},
		{Pass: "sparsify", Tensor: q, Data: pass.Zeros{Block: &[2]int{0, 1}}},
		{Pass: "sparsify", Tensor: q, Data: pass.Zeros{Block: &[2]int{-4, 1}}},
		{Pass: "sparsify", Tensor: q, Data: pass.Zeros{Block: &[2]int{3, 3}}},
		{Pass: "sparsify", Tensor: q, Data: pass.Zeros{Block: &[2]int{64, huge}}},
		{Pass: "sparsify", Tensor: q, Data: pass.Zeros{Runs: -1}},
		{Pass: "shift", Tensor: q, Data: pass.Shifted{Add: 1}},
		{Pass: "shift", Tensor: up, Data: pass.Shifted{Scale: "model.layers.0.post_attention_layernorm.weight"}},
		{Pass: "shift", Tensor: "lm_head.weight", Data: pass.Shifted{Add: 1e39}},
	}
}

func TestHostilePlansAreRefused(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	apply := func(steps ...*plan.Step) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "out")
		p, err := plan.Decode(testplan.Encoded(t, testplan.Of(t, m, steps...)))
		if err == nil {
			_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
		}
		if !errors.Is(err, plan.ErrInvalid) {
			js, _ := json.Marshal(steps)
			t.Errorf("%s: error %v", js, err)
		}
		testplan.NothingAt(t, out)
	}
	for _, s := range hostile() {
		apply(s)
	}
	round := &plan.Step{Pass: "round", Tensor: "lm_head.weight", Data: pass.Bits{Zeroed: 1}}
	apply(round, round)
	for _, s := range []*plan.Step{
		{Pass: "reorder", Index: "layers.0.kv", Data: []int{1, 0}},
		{Pass: "signs", Index: "layers.0.ffn", Data: []int{1}},
		{Pass: "scale", Index: "layers.0.ffn", Data: make([]int, 100)},
	} {
		apply(s, s)
	}
}

// FuzzApply applies a plan after bytes of its steps were changed. The result is an error or a whole folder.
func FuzzApply(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "model")
	if err := synth.Folder(f.Context(), testmodel.Config(f, "gpt2-tiny", `{"n_embd": 20, "vocab_size": 32, "n_layer": 1}`), dir, synth.Options{Seed: 7}); err != nil {
		f.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { m.Close() })
	js, err := os.ReadFile(filepath.Join("testdata", "gpt2-tiny.plan.json"))
	if err != nil {
		f.Fatal(err)
	}
	p, err := plan.Decode(js)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range p.Steps {
		js, _ := json.Marshal([]*plan.Step{s})
		f.Add(js)
	}
	f.Fuzz(func(t *testing.T, js []byte) {
		var steps []*plan.Step
		if json.Unmarshal(js, &steps) != nil {
			return
		}
		for _, s := range steps {
			if s == nil {
				return
			}
		}
		out := filepath.Join(t.TempDir(), "out")
		p, err := plan.Decode(testplan.Encoded(t, testplan.Of(t, m, steps...)))
		if err == nil {
			_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
		}
		if err != nil {
			if !errors.Is(err, plan.ErrInvalid) {
				t.Fatalf("error %v is not of class ErrInvalid", err)
			}
			testplan.NothingAt(t, out)
			return
		}
		result, err := weights.Open(out)
		testmodel.OK(t, err)
		testmodel.OK(t, result.Close())
	})
}
