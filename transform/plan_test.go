package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const everything = "scale,reorder,signs,shift,sparsify=0.2,grid=16,round=2"

func TestPlanRoundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	for _, model := range []string{"llama-tiny", "gpt2-tiny"} {
		for passes, least := range map[string]float64{everything: 0, "": 0, "scale,shift=4/epilogue,sparsify,grid,round": 25} {
			js := encoded(t, makePlan(t, tiny(t, model, 0), passes, least))
			p, err := DecodePlan(js)
			ok(t, err)
			if again := encoded(t, p); !bytes.Equal(again, js) {
				t.Errorf("%s %s: another plan after reading:\n%s\n%s", model, passes, js, again)
			}
			line, err := json.Marshal(p) // as the journal has it
			ok(t, err)
			p, err = DecodePlan(line)
			ok(t, err)
			if again := encoded(t, p); !bytes.Equal(again, js) {
				t.Errorf("%s %s: another plan after the journal", model, passes)
			}
		}
	}
}

func TestGoldenPlan(t *testing.T) {
	m := open(t, folder(t, config(t, "gpt2-tiny", `{"n_embd": 20, "vocab_size": 32, "n_layer": 1}`), synth.Options{Seed: 7}))
	got := encoded(t, makePlan(t, m, everything, 0))
	path := filepath.Join("testdata", "gpt2-tiny.plan.json")
	if *update {
		ok(t, os.WriteFile(path, got, 0o666))
	}
	want, err := os.ReadFile(path)
	ok(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("the plan is not %s; where that is meant, run this test with -update:\n%s", path, got)
	}
}

func TestDecodePlanRefuses(t *testing.T) {
	m := tiny(t, "gpt2-tiny", 0)
	js := string(encoded(t, makePlan(t, m, "reorder,round=2", 0)))
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", "EOF"},
		"cut short":      {js[:len(js)/2], "EOF"},
		"unknown field":  {strings.Replace(js, `"drop_in"`, `"drops_in"`, 1), `unknown field "drops_in"`},
		"unknown inside": {strings.Replace(js, `"zeroed"`, `"zeros"`, 1), `unknown field "zeros"`},
		"version":        {strings.Replace(js, `"plan_version": 1`, `"plan_version": 2`, 1), "version 2, this program reads version 1"},
		"pass":           {strings.Replace(js, `"pass":"round"`, `"pass":"floor"`, 1), `there is no pass "floor"`},
		"index":          {strings.Replace(js, `"index":`, `"tensor":`, 1), "step 0: reorder acts on an index, and names none"},
		"tensor":         {strings.Replace(js, `"pass":"reorder"`, `"pass":"round"`, 1), "step 0: round acts on a tensor, and names none"},
		"null step":      {strings.Replace(js, `"steps": [`, `"steps": [null,`, 1), "step 0: is null"},
		"two plans":      {js + js, "something follows its end"},
		"two braces":     {js + "}", "something follows its end"},
		"fraction":       {strings.Replace(js, `"zeroed":2`, `"zeroed":2.5`, 1), "cannot unmarshal"},
		"huge":           {strings.Replace(js, `"zeroed":2`, `"zeroed":1e400`, 1), "cannot unmarshal"},
		"drop-in":        {strings.Replace(js, `"drop_in": true`, `"drop_in": false`, 1), `"drop_in": false, and its steps say otherwise`},
	} {
		_, err := DecodePlan([]byte(c.text))
		if !errors.Is(err, ErrPlan) {
			t.Errorf("%s: error %v is not of class ErrPlan", name, err)
			continue
		}
		wantError(t, err, c.want)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	ok(t, os.WriteFile(path, []byte("[]"), 0o666))
	_, err := ReadPlan(path)
	wantError(t, err, path, "invalid plan")
}

func TestPlanForAnotherModel(t *testing.T) {
	p := makePlan(t, tiny(t, "gpt2-tiny", 0), "round=2", 0)
	for name, other := range map[string]*weights.Model{
		"another family": tiny(t, "llama-tiny", 0),
		"another type":   tiny(t, "gpt2-tiny", weights.F16),
		"another seed":   open(t, folder(t, config(t, "gpt2-tiny", ""), synth.Options{Seed: 2})),
	} {
		out := filepath.Join(t.TempDir(), "out")
		_, err := Apply(t.Context(), other, p, out, ApplyOptions{})
		if !errors.Is(err, ErrPlan) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		wantError(t, err, "it was made for another model", other.Dir)
		nothingAt(t, out)
	}
	// The folder's layout does not matter.
	one := open(t, folder(t, config(t, "gpt2-tiny", ""), synth.Options{Seed: 1}))
	ok(t, p.CheckModel(one))
}

// snr recomputes a layer's signal-to-noise ratio without symmetries and shifts.
func snr(before, after weights.Tensor) float64 {
	var signal, noise float64
	b := values(after)
	for i, a := range values(before) {
		signal += a * a
		noise += (b[i] - a) * (b[i] - a)
	}
	return 10 * math.Log10(signal/noise)
}

func TestBudgetIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and nothing in it is shared by goroutines")
	}
	rapid.Check(t, func(rt *rapid.T) {
		least := rapid.Float64Range(3, 60).Draw(rt, "least")
		passes := rapid.SampledFrom([]string{"grid,round", "round", "sparsify,round", "grid", "sparsify"}).Draw(rt, "passes")
		config := rapid.SampledFrom([]string{"llama-tiny", "gpt2-tiny"}).Draw(rt, "model")
		d := rapid.SampledFrom(kinds).Draw(rt, "type")
		m, err := weights.Open(budgetModel(t, config, d))
		ok(rt, err)
		defer m.Close()
		p, err := Make(t.Context(), m, options(t, passes, least))
		ok(rt, err)
		tmp, err := os.MkdirTemp("", "budget")
		ok(rt, err)
		defer os.RemoveAll(tmp)
		_, err = Apply(t.Context(), m, p, filepath.Join(tmp, "out"), ApplyOptions{})
		ok(rt, err)
		result, err := weights.Open(filepath.Join(tmp, "out"))
		ok(rt, err)
		defer result.Close()
		for _, o := range p.Outlook {
			got := snr(tensorOf(rt, m, o.Tensor), tensorOf(rt, result, o.Tensor))
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
		budgetModels[key] = folder(t, config(t, name, `{"n_layer": 1, "n_embd": 20, "num_hidden_layers": 1, "hidden_size": 24, "head_dim": 4, "intermediate_size": 40, "vocab_size": 32}`), synth.Options{DType: d})
	}
	return budgetModels[key]
}

func TestBudgetThatCannotBeMetIsMissed(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	p := makePlan(t, m, "round=7", 60)
	for _, o := range p.Outlook {
		if o.Missed != "[round=7] would fall below 60 dB" || o.SNR != nil {
			t.Errorf("%s: missed %q, %v dB", o.Tensor, o.Missed, o.SNR)
		}
	}
	if len(p.Steps) != 0 || len(p.Outlook) != len((&planner{model: m, layout: layoutOf(t, m)}).linears()) {
		t.Errorf("%d steps, %d outlooks", len(p.Steps), len(p.Outlook))
	}
}

// Passes that need an argument or a budget leave alone what no candidate fits.
func TestBudgetLeavesAloneWhatDoesNotFit(t *testing.T) {
	p := makePlan(t, tiny(t, "llama-tiny", 0), "grid,round", 150)
	if len(p.Steps) != 0 {
		t.Errorf("%d steps", len(p.Steps))
	}
	for _, o := range p.Outlook {
		if o.Missed != "" {
			t.Errorf("%s: missed %q, and nothing was asked for", o.Tensor, o.Missed)
		}
	}
}

func TestWorkloadIsPrefillUnlessGiven(t *testing.T) {
	o := options(t, "round=2", 0)
	o.Workload.Prefill, o.Workload.Decode = 0, 0
	p, err := Make(t.Context(), tiny(t, "llama-tiny", 0), o)
	ok(t, err)
	if w := p.Request.Workload; w.Prefill != 1 || w.Decode != 0 {
		t.Errorf("workload %+v", w)
	}
	encoded(t, p)
}

func TestReorderAsGiven(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	path := filepath.Join(t.TempDir(), "given.json")
	give := func(orders any) error {
		js, err := json.Marshal(orders)
		ok(t, err)
		ok(t, os.WriteFile(path, js, 0o666))
		p, err := Make(t.Context(), m, options(t, "reorder=given/"+path, 0))
		if err == nil && len(p.Steps) != 1 {
			t.Errorf("%d steps", len(p.Steps))
		}
		return err
	}
	ok(t, give(map[string][]int{"layers.1.kv": {1, 0}}))
	wantError(t, give(map[string][]int{"layers.1.kv": {1, 1}}), path, "index layers.1.kv: no permutation of its 2 labels")
	wantError(t, give(map[string][]int{"layers.1.kv.0.pair": {0, 1, 2, 3, 5, 4}}), path, "or it may not be permuted")
	wantError(t, give(map[string][]int{"layers.9.kv": {1, 0}}), path, `the model has no index "layers.9.kv"`)
	wantError(t, give([]int{1}), path, "cannot unmarshal")
	_, err := Make(t.Context(), m, options(t, "reorder=given/nowhere.json", 0))
	wantError(t, err, "nowhere.json")
}

// hostile are single steps that no planner would write for llama-tiny.
func hostile(layout *arch.Layout) []*Step {
	const q, up = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.up_proj.weight"
	huge := 1 << 40
	return []*Step{
		{Pass: "reorder", Index: "layers.0.ffn"},
		{Pass: "reorder", Index: "layers.0.ffn", Order: []int{0, 1}},
		{Pass: "reorder", Index: "layers.0.kv", Order: []int{0, 0}},
		{Pass: "reorder", Index: "layers.0.kv", Order: []int{0, 2}},
		{Pass: "reorder", Index: "layers.0.kv", Order: []int{-1, 0}},
		{Pass: "reorder", Index: "layers.0.kv", Order: []int{huge, 0}},
		{Pass: "reorder", Index: "layers.0.kv.0.pair", Order: identity(6)},
		{Pass: "reorder", Index: "layers.7.kv", Order: []int{1, 0}},
		{Pass: "signs", Index: "layers.0.ffn", Flip: []int{100}},
		{Pass: "signs", Index: "layers.0.ffn", Flip: []int{-1}},
		{Pass: "signs", Index: "layers.0.ffn", Flip: []int{3, 2}},
		{Pass: "signs", Index: "layers.0.ffn", Flip: []int{3, 3}},
		{Pass: "signs", Index: "layers.0.kv", Flip: []int{0}},
		{Pass: "scale", Index: "layers.0.kv.0.v", Exponents: []int{1}},
		{Pass: "scale", Index: "layers.0.kv.0.v", Exponents: append(make([]int, 11), huge)},
		{Pass: "scale", Index: "layers.0.kv.0.v", Exponents: append(make([]int, 11), 400)},
		{Pass: "scale", Index: "layers.0.kv.0.v", Exponents: append(make([]int, 11), -999)},
		{Pass: "scale", Index: "residual", Exponents: make([]int, 48)},
		{Pass: "grid", Tensor: q},
		{Pass: "grid", Tensor: q, Grid: &Grid{Exponents: []int{1}}},
		{Pass: "grid", Tensor: q, Grid: &Grid{Exponents: append(make([]int, 71), huge)}},
		{Pass: "round", Tensor: q},
		{Pass: "round", Tensor: q, Round: &Bits{Zeroed: 8}},
		{Pass: "round", Tensor: q, Round: &Bits{Zeroed: -1}},
		{Pass: "round", Tensor: "nobody", Round: &Bits{Zeroed: 1}},
		{Pass: "sparsify", Tensor: q},
		{Pass: "sparsify", Tensor: q, Zeros: &Zeros{}},
		{Pass: "sparsify", Tensor: q, Zeros: &Zeros{Pattern: "1:4"}},
		{Pass: "sparsify", Tensor: q, Zeros: &Zeros{Block: &[2]int{0, 1}}},
		{Pass: "sparsify", Tensor: q, Zeros: &Zeros{Block: &[2]int{-4, 1}}},
		{Pass: "sparsify", Tensor: q, Zeros: &Zeros{Block: &[2]int{3, 3}}},
		{Pass: "sparsify", Tensor: q, Zeros: &Zeros{Block: &[2]int{64, huge}}},
		{Pass: "sparsify", Tensor: q, Zeros: &Zeros{Runs: -1}},
		{Pass: "shift", Tensor: q, Shift: &Shift{Add: 1}},
		{Pass: "shift", Tensor: up, Shift: &Shift{Scale: "model.layers.0.post_attention_layernorm.weight"}},
		{Pass: "shift", Tensor: "lm_head.weight", Shift: &Shift{Add: 1e39}},
	}
}

func TestHostilePlansAreRefused(t *testing.T) {
	m := tiny(t, "llama-tiny", 0)
	apply := func(steps ...*Step) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "out")
		p, err := DecodePlan(encoded(t, planOf(t, m, steps...)))
		if err == nil {
			_, err = Apply(t.Context(), m, p, out, ApplyOptions{})
		}
		if !errors.Is(err, ErrPlan) {
			js, _ := json.Marshal(steps)
			t.Errorf("%s: error %v", js, err)
		}
		nothingAt(t, out)
	}
	for _, s := range hostile(layoutOf(t, m)) {
		apply(s)
	}
	round := &Step{Pass: "round", Tensor: "lm_head.weight", Round: &Bits{Zeroed: 1}}
	apply(round, round)
	for _, s := range []*Step{
		{Pass: "reorder", Index: "layers.0.kv", Order: []int{1, 0}},
		{Pass: "signs", Index: "layers.0.ffn", Flip: []int{1}},
		{Pass: "scale", Index: "layers.0.ffn", Exponents: make([]int, 100)},
	} {
		apply(s, s)
	}
}

func FuzzDecodePlan(f *testing.F) {
	js, err := os.ReadFile(filepath.Join("testdata", "gpt2-tiny.plan.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(js)
	f.Add([]byte(`{"plan_version": 1, "drop_in": true, "steps": [{"pass": "round", "tensor": "a", "round": {"zeroed": 4}}]}`))
	f.Fuzz(func(t *testing.T, js []byte) {
		p, err := DecodePlan(js)
		if err != nil {
			if !errors.Is(err, ErrPlan) {
				t.Fatalf("error %v is not of class ErrPlan", err)
			}
			return
		}
		first, err := p.Encode()
		if err != nil {
			return // a workload that is none
		}
		again, err := DecodePlan(first)
		ok(t, err)
		if second := encoded(t, again); !bytes.Equal(first, second) {
			t.Fatalf("%s\n%s", first, second)
		}
	})
}

// FuzzApply applies what is left of a plan after bytes of its steps were changed: an error or a
// whole folder, never anything between.
func FuzzApply(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "model")
	if err := synth.Folder(f.Context(), config(f, "gpt2-tiny", `{"n_embd": 20, "vocab_size": 32, "n_layer": 1}`), dir, synth.Options{Seed: 7}); err != nil {
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
	p, err := DecodePlan(js)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range p.Steps {
		js, _ := json.Marshal([]*Step{s})
		f.Add(js)
	}
	f.Fuzz(func(t *testing.T, js []byte) {
		var steps []*Step
		if json.Unmarshal(js, &steps) != nil {
			return
		}
		for _, s := range steps {
			if s == nil {
				return
			}
		}
		out := filepath.Join(t.TempDir(), "out")
		plan, err := DecodePlan(encoded(t, planOf(t, m, steps...)))
		if err == nil {
			_, err = Apply(t.Context(), m, plan, out, ApplyOptions{})
		}
		if err != nil {
			if !errors.Is(err, ErrPlan) {
				t.Fatalf("error %v is not of class ErrPlan", err)
			}
			nothingAt(t, out)
			return
		}
		result, err := weights.Open(out)
		ok(t, err)
		ok(t, result.Close())
	})
}
