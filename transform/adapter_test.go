package transform_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
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
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// loraRank and loraScale (alpha over rank) are the parameters of the adapters below.
const (
	loraRank  = 3
	loraScale = 2.0
)

var loraConfig = map[string]any{"peft_type": "LORA", "r": loraRank, "lora_alpha": loraRank * loraScale, "base_model_name_or_path": "org/base"}

// adapterTensor is a tensor of an adapter.
type adapterTensor struct {
	name  string
	shape []int
}

// loraOf lists a LoRA adapter's tensors for the base's tensors for which want is true: matrices on layers and
// embeddings; biases and norms in full.
func loraOf(m *weights.Model, l *arch.Layout, want func(*arch.Claim) bool) (list []adapterTensor) {
	for _, info := range m.Infos() {
		c := l.Claims[info.Name]
		if c == nil || !want(c) {
			continue
		}
		module, isWeight := strings.CutSuffix(c.Name, ".weight")
		path, matrix := "base_model.model."+module, isWeight && len(c.Axes) == 2
		switch {
		case c.Role == arch.Linear && matrix:
			list = append(list, adapterTensor{path + ".lora_A.weight", []int{loraRank, info.Shape[1-c.OutAxis]}},
				adapterTensor{path + ".lora_B.weight", []int{info.Shape[c.OutAxis], loraRank}})
		case c.Role == arch.Embedding && matrix:
			list = append(list, adapterTensor{path + ".lora_embedding_A", []int{loraRank, info.Shape[0]}},
				adapterTensor{path + ".lora_embedding_B", []int{info.Shape[1], loraRank}})
		case c.Role == arch.Bias || c.Role == arch.Norm:
			list = append(list, adapterTensor{"base_model.model." + c.Name, info.Shape})
		}
	}
	return list
}

// putAdapter writes an adapter of random numbers in float32 into a folder.
func putAdapter(t *testing.T, dir string, config map[string]any, list []adapterTensor) {
	t.Helper()
	var infos []weights.Info
	for _, a := range list {
		infos = append(infos, weights.Info{Name: a.name, DType: weights.F32, Shape: a.shape})
	}
	file, placed, err := weights.EncodeHeader(infos, map[string]string{"format": "pt"})
	ok(t, err)
	f, rng := formatOf(weights.F32), rand.New(rand.NewPCG(6, 0))
	for _, info := range placed {
		data := make([]byte, info.Size())
		for i := range info.Len() {
			f.SetElem(data, i, f.FromValue(float32(rng.NormFloat64()/4)))
		}
		file = append(file, data...)
	}
	ok(t, os.WriteFile(filepath.Join(dir, weights.AdapterName), file, 0o666))
	if config != nil {
		js, err := json.Marshal(config)
		ok(t, err)
		ok(t, os.WriteFile(filepath.Join(dir, weights.AdapterConfigName), js, 0o666))
	}
}

func always(*arch.Claim) bool { return true }

// withLoRA writes a model in float32 with an adapter on the tensors for which want is true.
func withLoRA(t *testing.T, config []byte, want func(*arch.Claim) bool) *weights.Model {
	t.Helper()
	dir := folder(t, config, synth.Options{Seed: 3, DType: weights.F32, ShardBytes: 60_000})
	m := open(t, dir)
	putAdapter(t, dir, loraConfig, loraOf(m, layoutOf(t, m), want))
	return open(t, dir)
}

// withDelta returns the base with its adapter merged, as a runtime would compute it: w + scale·B·A. The product is
// transposed for embeddings and for layers stored [in, out]. Tensors that the adapter has in full replace the base's.
func withDelta(t *testing.T, m *weights.Model, l *arch.Layout) *weights.Model {
	t.Helper()
	return rewritten(t, m, func(x weights.Tensor) []byte {
		path := "base_model.model." + strings.TrimSuffix(x.Name, ".weight")
		find := func(name string) []float64 {
			if a, found := m.Adapter.Tensor(name); found {
				return values(a)
			}
			return nil
		}
		w, full := values(x), find("base_model.model."+x.Name)
		a, b, across := find(path+".lora_A.weight"), find(path+".lora_B.weight"), l.Claims[x.Name].OutAxis == 1
		if a == nil {
			a, b, across = find(path+".lora_embedding_A"), find(path+".lora_embedding_B"), true
		}
		_, cols := x.Matrix()
		for i := range w {
			if full != nil {
				w[i] = full[i]
			}
			if a == nil {
				continue
			}
			out, in := i/cols, i%cols
			if across {
				out, in = in, out
			}
			sum := 0.0
			for r := range loraRank {
				sum += b[out*loraRank+r] * a[r*(len(a)/loraRank)+in]
			}
			w[i] += loraScale * sum
		}
		data, f := make([]byte, len(x.Data)), formatOf(x.DType)
		for i, v := range w {
			f.SetElem(data, i, f.FromValue(float32(v)))
		}
		return data
	})
}

// TestAdaptersGoAlong: all symmetries of a family keep the outputs of base and adapter together. Undoing them
// restores both files byte for byte.
func TestAdaptersGoAlong(t *testing.T) {
	for _, f := range arch.Families() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for _, s := range subjectsOf(t, f.Name) {
				if !strings.HasSuffix(s.name, "/as it is") {
					continue
				}
				m := withLoRA(t, s.config, always)
				l := layoutOf(t, m)
				if l.Adapter.Problem != "" {
					t.Fatal(l.Adapter.Problem)
				}
				want := s.outputs(t, withDelta(t, m, l))
				if d := apart(s.outputs(t, m), want); !(d > 1e-3) {
					t.Fatalf("the adapter changes the outputs by %.2g alone", d)
				}
				all := drawSymmetries(rand.New(rand.NewPCG(1, 2)), l, symmetryNames)
				there := convert(t, m, planOf(t, m, stepsOf(l, all)...))
				if d := apart(s.outputs(t, withDelta(t, there, l)), want); !(d <= sameOutputs) {
					t.Errorf("%s: the outputs are %.2g apart", s.name, d)
				}
				forgotten := *there
				forgotten.Adapter = m.Adapter
				if d := apart(s.outputs(t, withDelta(t, &forgotten, l)), want); !(d > 1e-3) {
					t.Errorf("%s: without converting the adapter, the outputs are only %.2g apart", s.name, d)
				}
				back := convert(t, there, planOf(t, there, stepsOf(l, undo(l, all))...))
				got, source := files(t, back.Dir), files(t, m.Dir)
				delete(got, plan.ManifestName)
				delete(got, "README.md") // the model card differs
				sameFiles(t, got, source)
			}
		})
	}
}

// TestPlannedPassesKeepWhatAnAdapterDoes: planned passes keep the function too. A fold leaves out tensors that the
// adapter changes.
func TestPlannedPassesKeepWhatAnAdapterDoes(t *testing.T) {
	s := subjectsOf(t, "gpt2")[0]
	attention := func(c *arch.Claim) bool { return c.Role == arch.Linear && strings.HasPrefix(c.Kind, "attn") }
	m := withLoRA(t, s.config, attention)
	l := layoutOf(t, m)
	p := makePlan(t, m, "scale,reorder,signs,shift", 0)
	folded := map[string]bool{}
	for _, step := range p.Steps {
		if step.Pass == "shift" {
			folded[l.Claims[step.Tensor].Kind] = true
		}
	}
	if !folded["mlp.c_fc"] || folded["attn.c_attn"] || folded["ln_1"] {
		t.Errorf("folded were %v", folded)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"the layers behind transformer.h.0.ln_1.weight are not shifted",
		"the adapter's base_model.model.transformer.h.0.attn.c_attn.lora_A.weight changes transformer.h.0.attn.c_attn.weight",
		"the adapter adapter_model.safetensors (8 tensors) is converted along with its base"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	want, got := s.outputs(t, withDelta(t, m, l)), s.outputs(t, withDelta(t, convert(t, m, p), l))
	if d := apart(got, want); !(d <= 1e-5) { // folds round in float32
		t.Errorf("the outputs are %.2g apart", d)
	}

	// A plan that was made without the adapter is carried out only if it fits the adapter.
	bare := open(t, folder(t, s.config, synth.Options{Seed: 3, DType: weights.F32, ShardBytes: 60_000}))
	p = makePlan(t, bare, "shift", 0)
	_, err := transform.Apply(t.Context(), m, p, filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
	wantError(t, err, "invalid plan", "the adapter's base_model.model.transformer.h.0.attn.c_attn.lora_A.weight changes")
	ok(t, errorOf(transform.Apply(t.Context(), m, makePlan(t, bare, "scale,reorder,signs", 0), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})))
}

func errorOf(_ any, err error) error { return err }

// TestAdaptersLimitWhatIsPlanned: powers of two stay within the range of the adapter's types, and its infinities keep
// their signs.
func TestAdaptersLimitWhatIsPlanned(t *testing.T) {
	for name, harm := range map[string]float32{"huge": 3e38, "infinite": float32(math.Inf(1))} {
		m := withLoRA(t, config(t, "llama-tiny", ""), always)
		path := filepath.Join(m.Dir, weights.AdapterName)
		file, err := os.ReadFile(path)
		ok(t, err)
		f := formatOf(weights.F32)
		head := len(m.Adapter.Head())
		for _, info := range m.Adapter.Tensors {
			for i := 0; i < info.Len() && strings.Contains(info.Name, "up_proj.lora_B"); i += 2 {
				f.SetElem(file[head+int(info.Begin):], i, f.FromValue(harm))
			}
		}
		ok(t, os.Remove(path))
		ok(t, os.WriteFile(path, file, 0o666))
		m = open(t, m.Dir)
		there, l := makePlan(t, m, "scale,reorder,signs", 0), layoutOf(t, m)
		result := convert(t, m, there)
		back := convert(t, result, planOf(t, result, stepsOf(l, undo(l, exactSteps(l, there)))...))
		if files(t, back.Dir)[weights.AdapterName] != string(file) {
			t.Errorf("%s values of the adapter were changed", name)
		}
	}
}

func TestLossyPassesLeaveAdaptersAlone(t *testing.T) {
	m := withLoRA(t, config(t, "llama-tiny", ""), always)
	p := makePlan(t, m, "sparsify=0.2,grid=8,round=2", 0)
	for _, s := range p.Steps {
		if strings.HasPrefix(s.Tensor, "base_model.") {
			t.Errorf("%s on the adapter's %s", s.Pass, s.Tensor)
		}
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "is copied unchanged") || transform.Passes.Moves(p) {
		t.Errorf("notes: %s", notes)
	}
	there := convert(t, m, p)
	if !bytes.Equal(there.Adapter.Data(), m.Adapter.Data()) {
		t.Error("the adapter changed")
	}
	own := m.Adapter.Tensors[0].Name
	_, err := transform.Apply(t.Context(), m, planOf(t, m, &plan.Step{Pass: "round", Tensor: own, Data: pass.Bits{Zeroed: 1}}), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
	wantError(t, err, "invalid plan", "the model has no tensor", own)
}

// TestAdaptersReadWhatIsPruned: outputs whose readers have all inputs pruned are still read by an adapter on these
// readers.
func TestAdaptersReadWhatIsPruned(t *testing.T) {
	for _, adapted := range []bool{false, true} {
		m := withLoRA(t, config(t, "llama-tiny", ""), func(c *arch.Claim) bool { return adapted == (c.Kind == "mlp.down_proj") })
		model := &pass.Model{Weights: quant.Group(m, nil), Layout: layoutOf(t, m)}
		if !adapted {
			model.Layout = layoutOf(t, open(t, folder(t, config(t, "llama-tiny", ""), synth.Options{})))
		}
		steps, err := pass.Prune.Complete(model, []*plan.Step{pass.Prune.TensorStep("model.layers.0.mlp.down_proj.weight", pass.Pruned{Inputs: []int{4}})})
		ok(t, err)
		if zeroed := len(steps) > 1; zeroed == adapted {
			t.Errorf("with an adapter %v: unread outputs are zeroed %v", adapted, zeroed)
		}
	}
}

// TestAdaptersThatCannotFollow: an invalid adapter is an error, by name, for passes that it could not follow. Other
// passes run.
func TestAdaptersThatCannotFollow(t *testing.T) {
	const down = "base_model.model.model.layers.0.mlp.down_proj"
	lora := []adapterTensor{{down + ".lora_A.weight", []int{loraRank, 100}}, {down + ".lora_B.weight", []int{48, loraRank}}}
	with := func(key string, v any) map[string]any {
		return map[string]any{"peft_type": "LORA", key: v}
	}
	for _, c := range []struct {
		config  map[string]any
		tensors []adapterTensor
		want    string
	}{
		{loraConfig, append(lora, adapterTensor{down + ".lora_magnitude_vector", []int{48}}), `tensor "` + down + `.lora_magnitude_vector": is neither lora_A`},
		{loraConfig, []adapterTensor{{down + ".ia3_l", []int{100}}}, `tensor "` + down + `.ia3_l"`},
		{loraConfig, []adapterTensor{{"prompt_embeddings", []int{8, 48}}}, `tensor "prompt_embeddings"`},
		{loraConfig, []adapterTensor{{"base_model.model.model.layers.7.mlp.down_proj.lora_A.weight", []int{loraRank, 100}}}, "layers.7"},
		{loraConfig, []adapterTensor{{down + ".lora_A.weight", []int{loraRank, 99}}}, `has shape [3 99], which does not fit the base model's linear "model.layers.0.mlp.down_proj.weight" [48 100]`},
		{loraConfig, []adapterTensor{{down + ".lora_A.weight", []int{loraRank, 100, 1, 1}}}, "has shape [3 100 1 1]"},
		{loraConfig, lora[:1], `tensor "` + down + `.lora_B.weight": is missing`},
		{loraConfig, []adapterTensor{{down + ".lora_embedding_A", []int{loraRank, 48}}}, "does not fit the base model's linear"},
		{loraConfig, []adapterTensor{{"base_model.model.model.embed_tokens.weight", []int{130, 48}}}, "has shape [130 48]"},
		{loraConfig, []adapterTensor{{"model.norm.weight", []int{48}}}, "the base model has a tensor of the same name"},
		{nil, lora, "adapter_config.json is missing"},
		{with("peft_type", "IA3"), lora, `peft_type is "IA3"`},
		{with("use_dora", true), lora, "use_dora is true"},
		{with("layer_replication", []any{[]any{0, 2}}), lora, "layer_replication is [[0,2]]"},
		{with("init_lora_weights", "pissa_niter_4"), lora, `init_lora_weights is "pissa_niter_4"`},
	} {
		dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
		putAdapter(t, dir, c.config, c.tensors)
		m := open(t, dir)
		for _, passes := range []string{"reorder", "shift=2/epilogue,round=2"} {
			_, err := transform.Plan(t.Context(), m, options(t, passes, 0))
			wantError(t, err, c.want, "merge the adapter into the base model", "such as round=4")
		}
		_, err := transform.Apply(t.Context(), m, planOf(t, m, &plan.Step{Pass: "signs", Index: "residual", Data: []int{0}}), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
		wantError(t, err, c.want)
		p := makePlan(t, m, "round=4", 0)
		if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, c.want) {
			t.Errorf("the notes lack %q:\n%s", c.want, notes)
		}
		if there := convert(t, m, p); !bytes.Equal(there.Adapter.Data(), m.Adapter.Data()) {
			t.Error("the adapter changed")
		}
		whole := options(t, "prune=0.1,trellis=0.01,compensate", 0)
		whole.Hessians = testmodel.HessiansOf(t, m)
		ok(t, errorOf(transform.Plan(t.Context(), m, whole)))
	}
}

func TestAdaptersElsewhereInTheFolder(t *testing.T) {
	for _, stray := range []string{"adapter_model.bin", "chat/adapter_model.safetensors", "adapter_config.json"} {
		dir := folder(t, config(t, "llama-tiny", ""), synth.Options{})
		ok(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, stray)), 0o777))
		ok(t, os.WriteFile(filepath.Join(dir, stray), []byte("{}"), 0o666))
		m := open(t, dir)
		_, err := transform.Plan(t.Context(), m, options(t, "reorder", 0))
		wantError(t, err, "is converted with the model, not "+stray)
		_, err = transform.Apply(t.Context(), m, planOf(t, m, &plan.Step{Pass: "signs", Index: "residual", Data: []int{0}}), filepath.Join(t.TempDir(), "out"), transform.ApplyOptions{})
		wantError(t, err, "is converted with the model, not "+stray)
		convert(t, m, makePlan(t, m, "round=4", 0))
	}
}

func TestAnAdapterIsNoModel(t *testing.T) {
	m := withLoRA(t, config(t, "llama-tiny", ""), always)
	_, err := transform.Plan(t.Context(), open(t, filepath.Join(m.Dir, weights.AdapterName)), options(t, "round=4", 0))
	wantError(t, err, "is an adapter, and adapters are converted with their base model")
}

// TestAdaptersOfOtherPrefixes: adapters name modules by their paths in a running model, which may differ from the
// checkpoint's.
func TestAdaptersOfOtherPrefixes(t *testing.T) {
	bare := func(t *testing.T, name string) *weights.Model { // like the published GPT-2
		dir := folder(t, config(t, name, ""), synth.Options{Seed: 1})
		alter(t, dir, func(infos []weights.Info, data map[string][]byte) []weights.Info {
			for i, info := range infos {
				short := strings.TrimPrefix(strings.TrimPrefix(info.Name, "transformer."), "model.")
				infos[i].Name, data[short] = short, data[info.Name]
			}
			return infos
		})
		return open(t, dir)
	}
	for name, adapted := range map[string]string{
		"gpt2-tiny":  "base_model.model.transformer.h.1.mlp.c_fc",
		"llama-tiny": "base_model.model.model.layers.1.mlp.up_proj",
	} {
		m := bare(t, name)
		l := layoutOf(t, m)
		l = l.Adapt([]byte(`{"peft_type": "LORA"}`), []weights.Info{
			{Name: adapted + ".lora_A.weight", Shape: []int{4, l.Dims["hidden"]}}, {Name: adapted + ".lora_B.weight", Shape: []int{ffnOf(t, m), 4}}})
		if l.Adapter.Problem != "" {
			t.Fatal(l.Adapter.Problem)
		}
		uses := l.Index("layers.1.ffn").Uses
		if last := uses[len(uses)-1]; last.Tensor != adapted+".lora_B.weight" || last.Axis != 0 {
			t.Errorf("%s: the index is used by %v", name, uses)
		}
	}
}

// TestAdaptersOfSeveralModalities: in a multimodal folder, an adapter may be on the language model, under the paths
// of two versions of the runtime, and on the tower. An ambiguous path is an error.
func TestAdaptersOfSeveralModalities(t *testing.T) {
	l := layoutOf(t, seeings[0].folder(t))
	outputs := l.Claims["language_model.model.layers.0.self_attn.q_proj.weight"].Axes[0].Len()
	adapt := func(module string, inputs int) *arch.Layout {
		path := "base_model.model." + module
		return l.Adapt([]byte(`{"peft_type": "LORA"}`), []weights.Info{
			{Name: path + ".lora_A.weight", Shape: []int{4, inputs}}, {Name: path + ".lora_B.weight", Shape: []int{outputs, 4}}})
	}
	for _, module := range []string{"language_model.model.layers.0.self_attn.q_proj", "model.language_model.layers.0.self_attn.q_proj"} {
		a := adapt(module, 48)
		if c := a.Claims["base_model.model."+module+".lora_A.weight"]; c == nil || c.Axes[1] != a.Claims["language_model.model.layers.0.self_attn.q_proj.weight"].Axes[1] {
			t.Errorf("%s: %v (%s)", module, c, a.Adapter.Problem)
		}
	}
	tower := adapt("model.vision_tower.vision_model.encoder.layers.0.self_attn.q_proj", 48)
	if len(tower.Claims) != len(l.Claims) || tower.Adapter.Problem != "" || len(tower.Adapter.Changes) != 1 {
		t.Errorf("%+v", tower.Adapter)
	}
	if either := adapt("model.layers.0.self_attn.q_proj", 48); either.Adapter.Problem == "" || either.Index("layers.0.ffn").Blocked == "" {
		t.Error("an ambiguous path is accepted")
	}
}

func ffnOf(t *testing.T, m *weights.Model) int {
	t.Helper()
	return layoutOf(t, m).Index("layers.1.ffn").Len
}

// TestResumeWithAnAdapter: an interrupted conversion continues with the adapter as with every shard.
func TestResumeWithAnAdapter(t *testing.T) {
	m := withLoRA(t, config(t, "llama-tiny", ""), always)
	p := makePlan(t, m, "scale,reorder,signs", 0)
	want := files(t, applied(t, m, p))
	for n := int64(1); ; n += 3 {
		out := filepath.Join(t.TempDir(), "out")
		if !testplan.Interrupted(t, m, p, out, n, false) {
			if n < 10 {
				t.Errorf("the conversion ended after %d events", n)
			}
			break
		}
		_, err := transform.Apply(t.Context(), m, p, out, transform.ApplyOptions{Resume: true})
		ok(t, err)
		sameFiles(t, files(t, out), want)
	}
	man, err := plan.ReadManifest(applied(t, m, p))
	ok(t, err)
	if !slices.ContainsFunc(man.Shards, func(s plan.Shard) bool { return s.File == weights.AdapterName }) {
		t.Errorf("the manifest names %v", man.Shards)
	}
}
