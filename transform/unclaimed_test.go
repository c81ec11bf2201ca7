package transform_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// withStranger returns a small GPT-2 with an untied head and one tensor that the family does not know.
func withStranger(t *testing.T, stranger weights.Info) *weights.Model {
	t.Helper()
	dir := folder(t, config(t, "gpt2-tiny", `{"tie_word_embeddings": false}`), synth.Options{Seed: 1, DType: weights.F32})
	alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		data[stranger.Name] = make([]byte, 4*stranger.Len())
		return append(infos, stranger)
	})
	return open(t, dir)
}

// TestShiftStaysAwayFromStrangers: a scale that the family does not know would change the shift or the fold, and a
// norm may have unknown readers.
func TestShiftStaysAwayFromStrangers(t *testing.T) {
	const h = "transformer.h.0."
	hidden := layoutOf(t, tiny(t, "gpt2-tiny", weights.F32)).Dims["hidden"]
	for _, c := range []struct {
		stranger weights.Info
		kept     []string // tensors without a step
		want     string
	}{
		{weights.Info{Name: h + "mlp.c_fc.gain", DType: weights.F32, Shape: []int{1}},
			[]string{h + "mlp.c_fc.weight", h + "ln_2.weight"}, `"` + h + `mlp.c_fc.gain" is not in the catalogue`},
		{weights.Info{Name: h + "attn.gate.weight", DType: weights.F32, Shape: []int{5, hidden}},
			[]string{h + "attn.c_attn.weight", h + "ln_1.weight"}, `"` + h + `attn.gate.weight" is not in the catalogue`},
		{weights.Info{Name: "lm_head.gain", DType: weights.F32, Shape: []int{7, 1}},
			[]string{"lm_head.weight"}, `"lm_head.gain" is not in the catalogue`},
	} {
		m := withStranger(t, c.stranger)
		p := makePlan(t, m, "shift", 0)
		for _, s := range p.Steps {
			if slices.Contains(c.kept, s.Tensor) {
				t.Errorf("%s beside %s is shifted", s.Tensor, c.stranger.Name)
			}
		}
		if notes := strings.Join(p.Notes, "\n"); len(p.Steps) == 0 || !strings.Contains(notes, c.want) {
			t.Errorf("%s: %d steps, notes:\n%s", c.stranger.Name, len(p.Steps), notes)
		}
		add := &plan.Step{Pass: "shift", Tensor: c.kept[0], Data: pass.Shifted{Add: 1, Epilogue: true}}
		plan := planOf(t, m, add)
		plan.DropIn = false
		if strings.HasSuffix(c.stranger.Name, ".gain") {
			_, err := transform.Apply(t.Context(), m, plan, filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
			wantError(t, err, "invalid plan", c.want)
		}
	}
}

// TestEmbeddersKeepTheirHiddenStates: in a folder that is loaded as an embedder, hidden states are the outputs.
func TestEmbeddersKeepTheirHiddenStates(t *testing.T) {
	for name, text := range map[string]string{"llama-tiny": "", "gpt2-tiny": `{"tie_word_embeddings": false}`} {
		dir := folder(t, config(t, name, text), synth.Options{Seed: 1})
		m := open(t, dir)
		if l := layoutOf(t, m); l.Index("residual").Blocked != "" || l.Index("final_norm").Blocked != "" {
			t.Fatal("blocked without a reason")
		}
		ok(t, os.WriteFile(filepath.Join(dir, "modules.json"), []byte("[]"), 0o666))
		m = open(t, dir)
		layout, err := arch.ResolveIfKnown(m, nil)
		ok(t, err)
		p := makePlan(t, m, "scale,reorder,signs,shift", 0)
		acted := map[string]bool{}
		for _, s := range p.Steps {
			if ix := layout.Index(s.Index); ix != nil {
				acted[ix.Kind] = true
			}
			if c := layout.Claims[s.Tensor]; c != nil && c.Role == arch.Norm && c.Layer < 0 {
				t.Errorf("%s: %s is folded away", name, s.Tensor)
			}
		}
		if acted["residual"] || acted["final_norm"] || !acted["ffn"] {
			t.Errorf("%s: changed: %v", name, acted)
		}
		given := filepath.Join(t.TempDir(), "given.json")
		ok(t, os.WriteFile(given, []byte(`{"residual": [1, 0]}`), 0o666))
		_, err = transform.Plan(t.Context(), m, options(t, "reorder=given/"+given, 0))
		wantError(t, err, given, "index residual cannot change: modules.json")
		if notes := fmt.Sprint(p.Notes); !strings.Contains(notes, "modules.json makes the model's hidden states its outputs") {
			t.Errorf("%s: notes %s", name, notes)
		}
	}
}

// TestResumeWithAnotherAdapter: an adapter that was replaced during an unfinished conversion is converted again.
func TestResumeWithAnotherAdapter(t *testing.T) {
	m := withLoRA(t, config(t, "llama-tiny", ""), always)
	p := makePlan(t, m, "scale,reorder,signs", 0)
	out := filepath.Join(t.TempDir(), "out")
	// Only the renaming is missing.
	ok(t, os.CopyFS(out+testplan.PartialSuffix, os.DirFS(applied(t, m, p))))
	path := filepath.Join(m.Dir, weights.AdapterName)
	file, err := os.ReadFile(path)
	ok(t, err)
	f := formatOf(weights.F32)
	f.SetElem(file[len(file)-4:], 0, f.FromValue(math.Pi))
	ok(t, os.Remove(path)) // the file is mapped
	ok(t, os.WriteFile(path, file, 0o666))
	m = open(t, m.Dir)
	want := files(t, applied(t, m, p))
	_, err = transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
	ok(t, err)
	sameFiles(t, files(t, out), want)
}

// layoutWith returns the layout of a model with an adapter of these tensors.
func layoutWith(l *arch.Layout, tensors ...weights.Info) *arch.Layout {
	return l.Adapt([]byte(`{"peft_type": "LORA"}`), tensors)
}

// TestAdaptersOfTowersAreNotTheLanguageModels: two tensors of an adapter cannot belong to one layer, and a tower's
// layers are not the language model's.
func TestAdaptersOfTowersAreNotTheLanguageModels(t *testing.T) {
	l := layoutOf(t, open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{})))
	const q = "layers.0.self_attn.q_proj.lora_A.weight"
	a := layoutWith(l, weights.Info{Name: "base_model.model.vision_tower.encoder." + q, Shape: []int{4, 48}})
	if !strings.Contains(a.Adapter.Problem, "is neither lora_A nor lora_B") {
		t.Errorf("a tower's layer is taken for the language model's: %q", a.Adapter.Problem)
	}
	a = layoutWith(l, weights.Info{Name: "base_model.model.model." + q, Shape: []int{4, 48}},
		weights.Info{Name: "base_model.model.tower." + q, Shape: []int{4, 48}})
	if !strings.Contains(a.Adapter.Problem, "only one tensor may change ") {
		t.Errorf("two for one layer: %q", a.Adapter.Problem)
	}
}
