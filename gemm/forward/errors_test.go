package forward_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// newError is New's error for a folder.
func newError(t *testing.T, dir string) error {
	t.Helper()
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f, err := arch.Detect(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := f.Resolve(m.Config, m.Infos())
	if err != nil {
		t.Fatal(err)
	}
	_, err = forward.New(m, layout)
	return err
}

func TestWhatIsNotComputedIsAnError(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes fields
		want    string
	}{
		{"llama-tiny", fields{"hidden_act": "mish"}, `hidden_act is "mish"; the forward pass knows gelu, gelu_fast, gelu_new`},
		{"llama-tiny", fields{"hidden_act": 3.0}, "hidden_act is 3, not a value such as silu"},
		{"llama-tiny", fields{"rms_norm_eps": -1.0}, "rms_norm_eps is -1, not above 0"},
		{"llama-tiny", fields{"rms_norm_eps": "small"}, "rms_norm_eps is small"},
		{"llama-tiny", fields{"quantization_config": map[string]any{"quant_method": "gptq"}}, "decodes no quantised weights"},
		{"llama-tiny", fields{"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5; the forward pass knows 1 only"},
		{"llama-tiny", rope(fields{"rope_type": "dynamic", "factor": 4.0}), `rope_type is "dynamic"; the forward pass knows default, linear, llama3, longrope and yarn`},
		{"llama-tiny", rope(fields{"rope_type": "linear"}), "rope_parameters.factor is 0, not above 0"},
		{"llama-tiny", rope(fields{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 64.0}), "not above low_freq_factor"},
		{"llama-tiny", rope(fields{"rope_theta": 0.0}), "rope_theta is 0, not above 0"},
		{"llama-tiny", rope(fields{"partial_rotary_factor": 0.25}), "rope_parameters.partial_rotary_factor is 0.25"},
		{"llama-tiny", fields{"rope_parameters": nil, "rope_scaling": map[string]any{"type": "dynamic", "factor": 2.0}}, `"dynamic"`},
		{"llama-tiny", fields{"rope_scaling": map[string]any{"type": "linear", "factor": 2.0}}, "both rope_parameters and rope_scaling"},
		{"llama-tiny", fields{"rope_scaling": "linear"}, "rope_scaling is linear, not an object"},
		{"llama-tiny", fields{"architectures": []string{"LlamaModel"}}, "the checkpoint has no lm_head"},
		{"gpt2-tiny", fields{"activation_function": "gelu_10"}, `activation_function is "gelu_10"`},
		{"gpt2-tiny", fields{"scale_attn_weights": false}, "scale_attn_weights is false; the forward pass knows true only"},
		{"gpt2-tiny", fields{"scale_attn_by_inverse_layer_idx": true}, "scale_attn_by_inverse_layer_idx is true"},
		{"gpt2-tiny", fields{"add_cross_attention": true}, "add_cross_attention is true"},
		{"llama-tiny", rope(fields{"rope_type": "longrope", "original_max_position_embeddings": 16.0, "short_factor": []float64{1, 2}}), "rope_parameters.short_factor has 2 numbers for 6 pairs"},
		{"phi3-long-tiny", fields{"rope_scaling": map[string]any{"type": "longrope", "short_factor": []float64{1, -1, 2}, "long_factor": []float64{1, 1, 2}}}, "short_factor has -1, not a number above 0"},
		{"gemma-tiny", fields{"use_bidirectional_attention": true}, "use_bidirectional_attention is true; the forward pass knows false only"},
		{"gemma2-tiny", fields{"layer_types": []string{"full_attention"}}, "layer_types has no full_attention and no sliding_attention for layer 1"},
		{"gemma2-tiny", fields{"sliding_window": 0}, "sliding_window is 0, not above 0"},
		{"gemma2-tiny", fields{"query_pre_attn_scalar": -4}, "query_pre_attn_scalar is -4, not above 0"},
		{"gemma3-tiny", fields{"attn_logit_softcapping": 30}, "attn_logit_softcapping is 30; the forward pass knows null only"},
		{"mixtral-tiny", fields{"num_experts_per_tok": 99}, "num_experts_per_tok is 99, of "},
		{"deepseek_v2-tiny", fields{"scoring_func": "sigmoid"}, "scoring_func is sigmoid; the forward pass knows softmax only"},
		{"deepseek_v2-tiny", fields{"norm_topk_prob": true}, "norm_topk_prob is true"},
		{"deepseek_v3-tiny", fields{"topk_method": "greedy"}, "topk_method is greedy"},
		{"deepseek_v3-tiny", fields{"n_group": 3}, "n_group is 3 and topk_group is 2: 8 experts are not so divided"},
		{"opt-tiny", fields{"_remove_final_layer_norm": true}, "_remove_final_layer_norm is true"},
		{"opt-projected-tiny", nil, refused["opt-projected-tiny"] + " is false"},
		{"opt-projected-tiny", fields{"do_layer_norm_before": true}, "word_embed_proj_dim is 20; the forward pass knows 35 only"},
		{"opt-tiny", fields{"word_embed_proj_dim": entries(36, "a"), "hidden_size": entries(36, "b")}, "word_embed_proj_dim is map["},
		{"bloom-tiny", fields{"apply_residual_connection_post_layernorm": true}, "apply_residual_connection_post_layernorm is true"},
	} {
		err := newError(t, synthetic(t, test.name, test.changes))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %v: error %v, want one with %q", test.name, test.changes, err, test.want)
		}
	}
}

// entries is an object of so many: package arch reads a size from their number.
func entries(n int, value string) map[string]any {
	all := map[string]any{}
	for i := range n {
		all[strconv.Itoa(i)] = value
	}
	return all
}

func TestUnknownTensorIsAnError(t *testing.T) {
	dir := synthetic(t, "llama-tiny", fields{"tie_word_embeddings": true})
	path := filepath.Join(dir, "model.safetensors")
	addTensor(t, path, "model.layers.0.mlp.up_proj.lowtoggle_shift")
	err := newError(t, dir)
	if err == nil || !strings.Contains(err.Error(), `"model.layers.0.mlp.up_proj.lowtoggle_shift" (1 such in all) is no part of family llama`) {
		t.Errorf("error %v, want one that names the tensor", err)
	}
}

// addTensor adds an F32 scalar to a safetensors file.
func addTensor(t *testing.T, path, name string) {
	t.Helper()
	f, err := weights.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	infos := append(append([]weights.Info(nil), f.Tensors...), weights.Info{Name: name, DType: weights.F32})
	head, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := append(append(head, f.Data()...), 0, 0, 0, 0)
	if err := os.WriteFile(path+".new", data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownFamily(t *testing.T) {
	m, err := weights.Open(synthetic(t, "llama-tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = forward.New(m, &arch.Layout{Family: "abacus"})
	if !errors.Is(err, forward.ErrNoForward) || !strings.Contains(err.Error(), "family abacus") {
		t.Errorf("error %v, want ErrNoForward that names the family", err)
	}
}

// TestLayoutsThatDoNotFit has what a user's own family file may bring.
func TestLayoutsThatDoNotFit(t *testing.T) {
	m, err := weights.Open(synthetic(t, "llama-tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f, err := arch.Detect(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(l *arch.Layout){
		"no self_attn.k_proj in layer 1":               func(l *arch.Layout) { delete(l.Claims, "model.layers.1.self_attn.k_proj.weight") },
		"no norm, which":                               func(l *arch.Layout) { delete(l.Claims, "model.norm.weight") },
		"is 128 × 48, the forward pass needs 100 × 48": func(l *arch.Layout) { l.Dims["vocab"] = 100 },
		`"model.layers.0.mlp.down_proj.weight": 72 inputs from 200 outputs before do not fit, the forward pass needs 72 from 144`: func(l *arch.Layout) {
			l.Claims["model.layers.0.mlp.down_proj.weight"].Axes = l.Claims["model.layers.0.self_attn.o_proj.weight"].Axes
		},
		`"model.layers.0.self_attn.o_proj.weight": 72 inputs from 120 outputs before do not fit, the forward pass needs 60 from 100`: func(l *arch.Layout) {
			l.Dims["head_dim"] = 10
		},
		"6 heads cannot share 4 KV heads":                              func(l *arch.Layout) { l.Dims["kv_heads"] = 4 },
		"11 of the 11 channels of a head would turn, and not in pairs": func(l *arch.Layout) { l.Dims["head_dim"] = 11 },
		`tensor "model.norm.weight": has 2 dimensions, the forward pass needs 1`: func(l *arch.Layout) {
			l.Claims["model.norm.weight"].Axes = l.Claims["lm_head.weight"].Axes
		},
	} {
		layout, err := f.Resolve(m.Config, m.Infos())
		if err != nil {
			t.Fatal(err)
		}
		spoil(layout)
		if _, err := forward.New(m, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	layout, err := f.Resolve(m.Config, m.Infos())
	if err != nil {
		t.Fatal(err)
	}
	for want, config := range map[string][]byte{"config.json: is not there": nil, "config.json: unexpected end": []byte("{")} {
		m.Config = config
		if _, err := forward.New(m, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestTokensThatDoNotFit(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes fields
		tokens  [][]int32
		want    string
	}{
		{"llama-tiny", nil, nil, "there are no sequences"},
		{"llama-tiny", nil, [][]int32{{1, 2}, {3}}, "sequence 1 has 1 tokens: give at least two"},
		{"llama-tiny", nil, [][]int32{{1, 2}, {3, 4, 128}}, "sequence 1, position 2: token 128 is outside the vocabulary of 128"},
		{"llama-tiny", nil, [][]int32{{1, -1}}, "sequence 0, position 1: token -1"},
		{"llama-tiny", nil, sequences(128, 64, 65), "sequence 1 has 65 tokens, the model takes at most 64"},
		{"llama-tiny", fields{"sliding_window": 16}, sequences(128, 17), "at most 16"},
		{"llama-tiny", fields{"max_position_embeddings": nil}, sequences(128, 2049), "at most 2048"},
		{"gpt2-tiny", nil, sequences(96, 33), "at most 32"},
	} {
		m, d := model(t, test.name, test.changes)
		_, err := d.Run(t.Context(), forward.Stored(m), test.tokens, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
}

func TestWeightsThatOverflow(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	for layer, want := range map[string]string{
		"model.layers.1.mlp.down_proj.weight":    "block 1: its results for sequence 0 are not finite",
		"model.layers.0.self_attn.q_proj.weight": "block 0: its results for sequence 0 are not finite",
		"lm_head.weight":                         "the loss in sequence 0 at position 0 is not finite",
	} {
		w := changed{forward.Stored(m), layer, float32(math.NaN())}
		_, err := d.Run(t.Context(), w, sequences(128, 4, 4), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", layer, err, want)
		}
	}
	// The second sequence alone has the token whose embedding overflows.
	w := poisoned{forward.Stored(m), 5 * 48}
	_, err := d.Run(t.Context(), w, [][]int32{{1, 2, 3}, {1, 2, 5, 4}}, nil)
	if want := "block 0: its results for sequence 1 are not finite"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// poisoned are weights with an infinite element in the embedding.
type poisoned struct {
	forward.Weights
	at int
}

func (p poisoned) Tensor(ctx context.Context, name string) ([]float32, error) {
	v, err := p.Weights.Tensor(ctx, name)
	if name == "model.embed_tokens.weight" {
		v[p.at] = float32(math.Inf(1))
	}
	return v, err
}

// short are weights that lack a value.
type short struct{ forward.Weights }

func (s short) Tensor(ctx context.Context, name string) ([]float32, error) {
	v, err := s.Weights.Tensor(ctx, name)
	return v[1:], err
}

func TestWeightsOfAnotherLength(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	_, err := d.Run(t.Context(), short{forward.Stored(m)}, sequences(128, 4), nil)
	if want := `tensor "model.embed_tokens.weight": 6143 values were given, its shape has 6144`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestStatesOutOfOrder(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	w := forward.Stored(m)
	s, err := d.Start(t.Context(), w, sequences(128, 4))
	if err != nil {
		t.Fatal(err)
	}
	_, scored := d.Score(t.Context(), w, s, nil)
	a, b := pass(t, d, w, sequences(128, 4), forward.Keep{}), end(t, d, w, sequences(128, 5))
	_, _, diverged := d.Divergence(t.Context(), a, s, w)
	for _, err := range []error{scored, diverged, d.Block(t.Context(), 1, w, s, nil), d.Block(t.Context(), -1, w, s, nil)} {
		if err == nil || !strings.Contains(err.Error(), "next block is 0") {
			t.Errorf("error %v, want one that says where the state is", err)
		}
	}
	if err := d.Block(t.Context(), d.Blocks(), w, b, nil); err == nil || !strings.Contains(err.Error(), "there is no block 2") {
		t.Errorf("error %v, want one that says that there is no such block", err)
	}
	if _, _, err := d.Divergence(t.Context(), a, b, w); err == nil || !strings.Contains(err.Error(), "same tokens") {
		t.Errorf("error %v, want one that says that tokens differ", err)
	}
}

// refusing is an Observer that ends the pass.
type refusing struct{ layer string }

var errRefused = errors.New("refused")

func (r refusing) Input(names []string, _ sgemm.Matrix) error {
	if names[0] == r.layer {
		return errRefused
	}
	return nil
}

func TestObserverEndsThePass(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	for _, layer := range []string{"model.layers.1.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight", "lm_head.weight"} {
		if _, err := d.Run(t.Context(), forward.Stored(m), sequences(128, 4), refusing{layer}); !errors.Is(err, errRefused) {
			t.Errorf("%s: error %v, want the observer's", layer, err)
		}
	}
}

// ending cancels when a layer is reached.
type ending struct {
	layer  string
	cancel func()
}

func (e ending) Input(names []string, _ sgemm.Matrix) error {
	if names[0] == e.layer {
		e.cancel()
	}
	return nil
}

func TestContextEndsThePass(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	for _, layer := range []string{"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight", "lm_head.weight"} {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := d.Run(ctx, forward.Stored(m), sequences(128, 4), ending{layer, cancel}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want the context's", layer, err)
		}
		cancel()
	}
}

// TestTensorsBesideTheModel: layers that predict further tokens, and eyes, do nothing to text.
func TestTensorsBesideTheModel(t *testing.T) {
	dir := synthetic(t, "deepseek_v3-tiny", nil)
	addTensor(t, filepath.Join(dir, "model.safetensors"), "model.layers.3.eh_proj.weight")
	if err := newError(t, dir); err != nil {
		t.Errorf("with a layer behind the last: %v", err)
	}

	m, d := model(t, "llama-tiny", nil)
	dir = synthetic(t, "llama-tiny", nil)
	path := filepath.Join(dir, "model.safetensors")
	rename(t, path, func(name string) string { return "language_model." + name })
	config := slices.Concat([]byte(`{"model_type": "llava", "text_config": `), m.Config, []byte("}"))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o666); err != nil {
		t.Fatal(err)
	}
	addTensor(t, path, "vision_tower.patches.weight")
	within, dw := open(t, dir)
	tokens := sequences(64, 9, 20)
	if diff := cmp.Diff(run(t, d, forward.Stored(m), tokens), run(t, dw, forward.Stored(within), tokens)); diff != "" {
		t.Errorf("(-alone +beside a vision tower)\n%s", diff)
	}
	addTensor(t, path, "language_model.model.layers.0.stray.weight")
	if err := newError(t, dir); err == nil || !strings.Contains(err.Error(), "stray") {
		t.Errorf("error %v, want one that names the stray tensor", err)
	}
}
