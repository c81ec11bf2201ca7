package transform_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/verify"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// converted converts a quantised checkpoint and verifies the result. It checks that every quantised tensor kept its
// bytes, except codes and scales of weights with steps. It returns the plan, and the names of other changed tensors.
func converted(t *testing.T, name string, m *weights.Model, o transform.Options) (p *plan.Plan, changed []string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	c, err := transform.Convert(t.Context(), m, out, transform.ConvertOptions{Options: o})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p = c.Plan
	q, err := quant.Describe(m)
	ok(t, err)
	result := open(t, out)
	steps := plan.ByTensor(p.Steps)
	recoded := func(tensor string) bool {
		w, ok := q.WeightOf(tensor)
		return ok && len(steps[w.Name]) > 0
	}
	for _, info := range m.Infos() {
		if recoded(info.Name) {
			if _, role, _ := q.Tensor(info.Name); role == quant.Codes || role == quant.Scales {
				continue
			}
		}
		if !bytes.Equal(tensorOf(t, m, info.Name).Data, tensorOf(t, result, info.Name).Data) {
			changed = append(changed, info.Name)
			if q.Holds(info.Name) {
				t.Errorf("%s: %s changed", name, info.Name)
			}
		}
	}
	if !p.DropIn || !c.Manifest.DropIn || len(p.Quantised) == 0 && len(steps) == 0 {
		t.Errorf("%s: drop-in %v and %v; copied: %v", name, p.DropIn, c.Manifest.DropIn, p.Quantised)
	}
	for _, o := range p.Predictions {
		if w, ok := q.Weight(o.Tensor); ok && w.CanRead() != nil {
			t.Errorf("%s: a saving is claimed for %s", name, o.Tensor)
		}
	}
	r, err := transform.Verify(t.Context(), m, result, transform.VerifyOptions{})
	if err != nil || !r.OK || len(r.Quantised) != len(p.Quantised) {
		t.Errorf("%s: verify: %v, %+v", name, err, r)
	}
	for _, x := range r.Tensors {
		if q.Holds(x.Name) && !recoded(x.Name) && (x.Class != verify.Untouched || x.Linear) {
			t.Errorf("%s: %s is %s, linear %v", name, x.Name, x.Class, x.Linear)
		}
	}
	return p, changed
}

func recipe(t *testing.T, r transform.Recipe) transform.Options {
	t.Helper()
	o := options(t, r.Passes, 0)
	o.Budget.MinSNR = r.MinSNR
	return o
}

// TestQuantisedTensorsAreCopied: in every layout, with every recipe, for a known and an unknown family.
func TestQuantisedTensorsAreCopied(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := open(t, testmodel.Quantised(t, q, testmodel.With{}))
		unknown := open(t, testmodel.Quantised(t, q, testmodel.With{Fields: `{"model_type": "x", "architectures": ["X"]}`}))
		for _, r := range transform.Recipes {
			name := q.Name + ", " + r.Name
			p, changed := converted(t, name, m, recipe(t, r))
			want := []string{"lm_head.weight"}
			if r.Name == "exact" {
				want = append(want, "model.norm.weight") // scaled against each other
			}
			slices.Sort(changed)
			if !slices.Equal(changed, want) || p.NothingLeft() || p.Model.Family != "llama" {
				t.Errorf("%s: changed: %q, nothing left: %v, family %q, notes %q", name, changed, p.NothingLeft(), p.Model.Family, p.Notes)
			}
			if r.Name == "exact" {
				continue
			}
			if _, changed := converted(t, name+", unknown family", unknown, recipe(t, r)); !slices.Equal(changed, want) {
				t.Errorf("%s: changed: %q", name, changed)
			}
		}
	}
}

// TestNothingIsLeft: if all linear layers are quantised and no step changes codes, the copy has the source's bytes.
func TestNothingIsLeft(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		config := strings.NewReplacer(`["lm_head"]`, `[]`).Replace(q.Config)
		m := open(t, testmodel.Quantised(t, q, testmodel.With{Head: true, Config: config}))
		for _, r := range transform.Recipes {
			read := false
			d, err := quant.Describe(m)
			ok(t, err)
			for _, w := range d.Weights {
				read = read || w.CanRead() == nil
			}
			if p, changed := converted(t, q.Name, m, recipe(t, r)); len(changed) > 0 || !p.NothingLeft() && !(read && r.Name != "exact") {
				t.Errorf("%s, %s: changed: %q, steps %v", q.Name, r.Name, changed, p.Steps)
			}
		}
	}
}

// TestMixedCheckpoints: unquantised layers are converted and counted as in other checkpoints.
func TestMixedCheckpoints(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := open(t, testmodel.Quantised(t, q, testmodel.With{Keep: []string{"layers.0.mlp"}}))
		p, changed := converted(t, q.Name, m, options(t, "round=4", 0))
		want := []string{"lm_head.weight", "model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"}
		slices.Sort(changed)
		if !slices.Equal(changed, want) || len(p.Predictions) < len(want) || p.NothingLeft() {
			t.Errorf("%s: changed: %q of %d layers", q.Name, changed, len(p.Predictions))
		}
		// The unquantised FFN has its own indices.
		p, changed = converted(t, q.Name, m, options(t, "scale,reorder,signs", 0))
		for _, s := range p.Steps {
			if !slices.Contains([]string{"layers.0.ffn", "layers.0.mlp_norm", "final_norm"}, s.Index) {
				t.Errorf("%s: index %s is changed", q.Name, s.Index)
			}
		}
		if len(p.Steps) == 0 || len(changed) == 0 {
			t.Errorf("%s: the unquantised FFN did not change; notes %q", q.Name, p.Notes)
		}
	}
}

// gptqOfGPT2 returns a GPT-2, which stores inputs × outputs, with a quantised c_fc in the first block.
func gptqOfGPT2(t *testing.T) *weights.Model {
	t.Helper()
	dir := folder(t, config(t, "gpt2-tiny", `{"n_embd": 64, "n_head": 4, "n_inner": 128, "tie_word_embeddings": false}`), synth.Options{Seed: 1, DType: weights.F32})
	alter(t, dir, func(infos []weights.Info, data map[string][]byte) (kept []weights.Info) {
		for _, i := range infos {
			if module, is := strings.CutSuffix(i.Name, "h.0.mlp.c_fc.weight"); is {
				for _, x := range []weights.Info{{Name: "qweight", DType: weights.I32, Shape: []int{8, 128}}, {Name: "scales", DType: weights.F16, Shape: []int{2, 128}},
					{Name: "qzeros", DType: weights.I32, Shape: []int{2, 16}}} {
					x.Name = module + "h.0.mlp.c_fc." + x.Name
					data[x.Name] = bytes.Repeat([]byte{1, 0x20}, x.Len()*x.DType.Bits()/16)
					kept = append(kept, x)
				}
				continue
			}
			kept = append(kept, i)
		}
		return kept
	})
	return open(t, dir)
}

// TestFoldsStayAwayFromQuantisedWeights: a norm that a quantised layer reads is not folded.
func TestFoldsStayAwayFromQuantisedWeights(t *testing.T) {
	m := gptqOfGPT2(t)
	l := layoutOf(t, m)
	if c := l.Claims["transformer.h.0.mlp.c_fc.weight"]; c == nil || c.Quantised != "int4, groups of 32 (gptq)" {
		t.Fatalf("%+v", c)
	}
	p, changed := converted(t, "shift", m, options(t, "shift", 0))
	if slices.Contains(changed, "transformer.h.0.ln_2.weight") || !slices.Contains(changed, "transformer.h.1.ln_2.weight") {
		t.Errorf("changed: %q; notes %q", changed, p.Notes)
	}
	converted(t, "exact", m, options(t, "scale,reorder,signs,sparsify=0.1,round=4", 0))
}

// TestShiftsStayAwayFromQuantisedWeights: quantised layers are not shifted, even if a runtime would apply the shift.
func TestShiftsStayAwayFromQuantisedWeights(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		m := open(t, testmodel.Quantised(t, q, testmodel.With{Keep: []string{"layers.0.mlp"}}))
		p := makePlan(t, m, "shift=4/epilogue", 0)
		if len(p.Steps) != 4 || strings.Contains(strings.Join(p.Notes, "\n"), "is not shifted") {
			t.Errorf("%s: %d layers are shifted, want the unquantised FFN and lm_head; notes %q", q.Name, len(p.Steps), p.Notes)
		}
	}
}

// TestQuantisedCatalogue: in every architecture, half of the layers are FP8 with a scale, and the others are
// converted.
func TestQuantisedCatalogue(t *testing.T) {
	for _, name := range synth.Names() {
		if !strings.HasSuffix(name, "-tiny") {
			continue
		}
		dir := folder(t, config(t, name, ""), synth.Options{Seed: 1})
		plain := layoutOf(t, open(t, dir))
		n := 0
		alter(t, dir, func(infos []weights.Info, data map[string][]byte) (list []weights.Info) {
			for _, i := range infos {
				if plain.IsLinear(i) && len(i.Shape) == 2 && strings.HasSuffix(i.Name, ".weight") {
					if n++; n%2 == 0 {
						scale := weights.Info{Name: i.Name + "_scale", DType: weights.F32}
						i.DType = weights.F8E4M3
						data[i.Name], data[scale.Name] = data[i.Name][:i.Len()], []byte{1, 2, 3, 0x3c}
						for k := range data[i.Name] {
							data[i.Name][k] &= 0xbf // no NaN
						}
						list = append(list, scale)
					}
				}
				list = append(list, i)
			}
			return list
		})
		m := open(t, dir)
		l := layoutOf(t, m)
		if len(l.Unclaimed) > 0 || len(l.Quantised.Weights) != n/2 || len(l.Indices) != len(plain.Indices) {
			t.Errorf("%s: unclaimed: %q, %d of %d layers are quantised", name, l.Unclaimed, len(l.Quantised.Weights), n)
		}
		p, changed := converted(t, name, m, options(t, "scale,reorder,signs,round=4", 0))
		for _, s := range p.Steps {
			if s.Index != "" && slices.ContainsFunc(plain.Index(s.Index).Uses, func(u arch.Use) bool { return l.Quantised.Holds(u.Tensor) }) {
				t.Errorf("%s: %s changes index %s of a quantised weight", name, s.Pass, s.Index)
			}
		}
		if len(changed) == 0 {
			t.Errorf("%s: nothing changed", name)
		}
	}
}

// TestAdapterOfAQuantisedModel: a LoRA adapter beside a quantised model is copied, and has no effect.
func TestAdapterOfAQuantisedModel(t *testing.T) {
	dir := testmodel.Quantised(t, testmodel.Quantisations[8], testmodel.With{})
	const on = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
	head, placed, err := weights.EncodeHeader([]weights.Info{{Name: on + "A.weight", DType: weights.F32, Shape: []int{2, 128}}, {Name: on + "B.weight", DType: weights.F32, Shape: []int{128, 2}}}, nil)
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, weights.AdapterName), append(head, make([]byte, placed[1].End)...), 0o666))
	ok(t, os.WriteFile(filepath.Join(dir, weights.AdapterConfigName), []byte(`{"peft_type": "LORA", "target_modules": ["q_proj"]}`), 0o666))
	for _, passes := range []string{"round=4", "scale,reorder,signs,round=4"} {
		if _, changed := converted(t, passes, open(t, dir), options(t, passes, 0)); !slices.Contains(changed, "lm_head.weight") {
			t.Errorf("%s: changed: %q", passes, changed)
		}
	}
}

// TestStepsOnQuantisedTensors: a plan or a manifest that changes a tensor of a quantised weight is an error, and so
// is such a result.
func TestStepsOnQuantisedTensors(t *testing.T) {
	m := open(t, testmodel.Quantised(t, testmodel.Quantisations[1], testmodel.With{}))
	const tensor = "model.layers.0.mlp.up_proj.weight_scale"
	p := planOf(t, m, &plan.Step{Pass: "round", Tensor: tensor, Data: pass.Bits{Zeroed: 3}})
	out := filepath.Join(t.TempDir(), "out")
	_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{})
	wantError(t, err, "invalid plan", tensor, "holds scales of a quantised weight (fp8, per channel (compressed-tensors)) and can only be copied")
	testplan.NothingAt(t, out)

	out = testplan.Applied(t, m, nil, planOf(t, m))
	edit(t, out, func(info weights.Info, data []byte) {
		if info.Name == tensor {
			data[0] ^= 1
		}
	})
	r, err := transform.Verify(t.Context(), m, open(t, out), transform.VerifyOptions{})
	ok(t, err)
	i := slices.IndexFunc(r.Tensors, func(x verify.Tensor) bool { return x.Name == tensor })
	if r.OK || !strings.Contains(r.Tensors[i].Problem, "holds scales of a quantised weight") {
		t.Errorf("%v: %q", r.OK, r.Tensors[i].Problem)
	}
}

// TestUnlistedLayersAreCopied: a layer that is stored unquantised, but missing in the config's list, is copied and
// reported. A config without a list does not matter.
func TestUnlistedLayersAreCopied(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		var c map[string]any
		ok(t, json.Unmarshal([]byte(q.Config), &c))
		if strings.HasPrefix(q.Name, "unknown") {
			continue
		}
		m := open(t, testmodel.Quantised(t, q, testmodel.With{Keep: []string{"layers.0.mlp"}, Unlisted: true}))
		p, changed := converted(t, q.Name, m, options(t, "round=4", 0))
		i := slices.IndexFunc(p.Quantised, func(c quant.Copied) bool {
			return strings.HasPrefix(c.Format, "unquantised, but not listed in config.json")
		})
		switch listed := testmodel.ListField(c) != ""; {
		case listed && (len(changed) != 1 || i < 0 || p.Quantised[i].Tensors != 3 || p.Quantised[i].Role != quant.Values):
			t.Errorf("%s: changed: %q; copied: %+v", q.Name, changed, p.Quantised)
		case !listed && (len(changed) != 4 || i >= 0):
			t.Errorf("%s: changed: %q; copied: %+v", q.Name, changed, p.Quantised)
		}
	}
}
