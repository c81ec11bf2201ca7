package transform_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// seeing is a multimodal folder: a language model of the catalogue, and other tensors.
type seeing struct {
	name      string
	text      string         // configuration of the language model
	modelType string         // model_type of the folder
	from, to  string         // prefix of the language model's tensors, alone and in the folder
	others    map[string]int // other tensors, with 16 values times this number
	strangers []string       // names of unclaimed tensors in notes
}

// seeings have towers with the language model's width and names of layers.
var seeings = []seeing{
	{"LLaVA", "llama-tiny", "llava", "", "language_model.", map[string]int{
		"vision_tower.vision_model.embeddings.patch_embedding.weight":        48,
		"vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight":          100,
		"vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight": 48,
		"vision_tower.vision_model.encoder.layers.1.self_attn.q_proj.weight": 48,
		"multi_modal_projector.linear_1.weight":                              48,
		"multi_modal_projector.linear_2.weight":                              48,
	}, []string{"multi_modal_projector (2 tensors)", "vision_tower (4 tensors)"}},
	{"Gemma 3", "gemma3-tiny", "gemma3", "model.", "language_model.model.", map[string]int{
		"vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": 36,
		"multi_modal_projector.mm_input_projection_weight":          36,
	}, []string{"multi_modal_projector.mm_input_projection_weight", "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight"}},
	{"saved anew", "llama-tiny", "llava", "model.", "model.language_model.", map[string]int{
		"model.vision_tower.layers.0.self_attn.q_proj.weight": 48,
		"model.vision_tower.layers.1.self_attn.q_proj.weight": 48,
		"model.multi_modal_projector.linear_1.weight":         48,
	}, []string{"model.multi_modal_projector.linear_1.weight", "model.vision_tower (2 tensors)"}},
}

// folder writes the model.
func (s seeing) folder(t *testing.T) *weights.Model {
	t.Helper()
	text := config(t, s.text, "")
	dir := folder(t, text, synth.Options{Seed: 2, DType: weights.F32})
	alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
		for i, info := range infos {
			if rest, ok := strings.CutPrefix(info.Name, s.from); ok {
				infos[i].Name, data[s.to+rest] = s.to+rest, data[info.Name]
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.others)) {
			info := weights.Info{Name: name, DType: weights.F32, Shape: []int{16, s.others[name]}}
			for i := range info.Len() {
				data[name] = append(data[name], byte(i), byte(i>>3), byte(i*7), 60)
			}
			infos = append(infos, info)
		}
		return infos
	})
	js, err := json.Marshal(map[string]any{"model_type": s.modelType, "text_config": json.RawMessage(text),
		"vision_config": map[string]any{"hidden_size": 48, "num_hidden_layers": 9}})
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, "config.json"), js, 0o666))
	return open(t, dir)
}

// language returns the language model alone.
func (s seeing) language(t *testing.T, m *weights.Model) *weights.Model {
	t.Helper()
	dir := folder(t, config(t, s.text, ""), synth.Options{Seed: 9, DType: weights.F32})
	edit(t, dir, func(info weights.Info, data []byte) {
		name := info.Name
		if rest, ok := strings.CutPrefix(name, s.from); ok {
			name = s.to + rest
		}
		copy(data, tensorOf(t, m, name).Data)
	})
	return open(t, dir)
}

// TestSeveralModalities: the language model of a multimodal folder is converted. Other tensors do not change, nor do
// indices that they may share.
func TestSeveralModalities(t *testing.T) {
	for _, s := range seeings {
		t.Run(s.name, func(t *testing.T) {
			m := s.folder(t)
			l := layoutOf(t, m)
			if len(l.Unclaimed) != len(s.others) {
				t.Fatalf("unclaimed tensors: %v", l.Unclaimed)
			}
			p := makePlan(t, m, "scale,reorder,signs", 0)
			acted := map[string]bool{}
			for _, step := range p.Steps {
				acted[l.Index(step.Index).Kind] = true
			}
			if acted["residual"] || !acted["ffn"] {
				t.Errorf("changed: %v", acted)
			}
			notes := strings.Join(p.Notes, "\n")
			for _, stranger := range s.strangers {
				if !strings.Contains(notes, stranger+": not part of the family "+l.Family+": left unchanged") {
					t.Errorf("the notes lack %q:\n%s", stranger, notes)
				}
			}
			if !strings.Contains(notes, ": tensor "+strconv.Quote(slices.Min(slices.Collect(maps.Keys(s.others))))+" is not in the catalogue and has a dimension of ") {
				t.Errorf("the notes do not say why the residual stream stays:\n%s", notes)
			}
			there := convert(t, m, p)
			for name := range s.others {
				if string(tensorOf(t, there, name).Data) != string(tensorOf(t, m, name).Data) {
					t.Errorf("%s changed", name)
				}
			}
			run := subjectsOf(t, l.Family)[0]
			for _, candidate := range subjectsOf(t, l.Family) {
				if candidate.name == s.text+"/as it is" {
					run = candidate
				}
			}
			want, got := run.outputs(t, s.language(t, m)), run.outputs(t, s.language(t, there))
			if d := apart(got, want); !(d <= sameOutputs) {
				t.Errorf("the language model's outputs are %.2g apart", d)
			}
			lossy := convert(t, m, makePlan(t, m, "round=8", 0))
			for name := range s.others {
				if string(tensorOf(t, lossy, name).Data) != string(tensorOf(t, m, name).Data) {
					t.Errorf("%s was rounded", name)
				}
			}
		})
	}
}
