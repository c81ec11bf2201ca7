package forward_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

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

func TestTokensThatDoNotFit(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	_, err := d.Run(t.Context(), forward.Stored(m), [][]int32{{1, 2}, {3, 4, 128}}, nil)
	if want := "sequence 1, position 2: token 128 is outside"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestWeightsThatOverflow(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	for layer, want := range map[string]string{
		"model.layers.1.mlp.down_proj.weight":    "block 1: the results for sequence 0 are not finite",
		"model.layers.0.self_attn.q_proj.weight": "block 0: the results for sequence 0 are not finite",
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
	if want := "block 0: the results for sequence 1 are not finite"; err == nil || !strings.Contains(err.Error(), want) {
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
	if want := `tensor "model.embed_tokens.weight": 6143 values were given, but its shape has 6144`; err == nil || !strings.Contains(err.Error(), want) {
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

// TestEyesDoNothingToText: a vision tower in the checkpoint does not change a language model's losses.
func TestEyesDoNothingToText(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	dir := synthetic(t, "llama-tiny", nil)
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
}
