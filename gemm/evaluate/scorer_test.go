package evaluate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/tally"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

func few() tokens.Set {
	return tokens.Set{Part: tokens.Part{N: 3, T: 4, Sequences: [][]int32{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}}, Purpose: tokens.Evaluation, File: "f"}
}

// TestCompareIsForwards: both losses and the comparison equal package forward's, with one pass for each model.
func TestCompareIsForwards(t *testing.T) {
	before, after := testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "llama-tiny", 2)
	s, err := evaluate.New(before, nil, few(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var counts tally.Tally
	steps := 0
	s.Step = func() { steps++ }
	got, err := s.Compare(tally.With(t.Context(), &counts), before, after, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all [2]*forward.Scores
	for i, m := range []*weights.Model{before, after} {
		if all[i], err = s.Decoder.Run(t.Context(), forward.Stored(m), s.Tokens.Sequences, nil); err != nil {
			t.Fatal(err)
		}
	}
	want, err := forward.Compare(all[0], all[1])
	if err != nil {
		t.Fatal(err)
	}
	if got.Comparison != want || got.Before != all[0].Loss() || got.After != all[1].Loss() || want.Difference == 0 || got.Tokens.File != "f" {
		t.Errorf("%+v, want %+v of %v and %v", got, want, all[0].Loss(), all[1].Loss())
	}
	if n := counts.Counts()["forward.Pass"]; n != 2 || steps != 2*s.Steps() {
		t.Errorf("%d passes in %d steps, want one for each model in %d", n, steps, 2*s.Steps())
	}
}

// TestCompareNeedsBothModels: Compare checks both models before it scores one.
func TestCompareNeedsBothModels(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	s, err := evaluate.New(m, nil, few(), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Step = func() { t.Error("a model is scored") }
	for _, models := range [][2]*weights.Model{{m, nil}, {nil, m}, {nil, nil}} {
		if _, err := s.Compare(t.Context(), models[0], models[1], nil); !errors.Is(err, weights.ErrNoModel) {
			t.Error(err)
		}
	}
	if _, err := s.Score(t.Context(), nil, nil); !errors.Is(err, weights.ErrNoModel) {
		t.Error(err)
	}
}

// TestErrorsSayWhichModelAndTokens: errors name the model's and the tokens' file.
func TestErrorsSayWhichModelAndTokens(t *testing.T) {
	m := testmodel.Random(t, "llama-tiny", 1)
	beyond := few()
	beyond.Sequences[1][2] = 1 << 20
	s, err := evaluate.New(m, nil, beyond, 0)
	if err != nil {
		t.Fatal(err)
	}
	where := m.Dir + ": on the evaluation tokens of f: "
	_, err = s.Compare(t.Context(), m, m, nil)
	testmodel.WantError(t, err, where, "outside the vocabulary")
	s.Device = new(evaluate.Device) // is not asked for anything
	_, err = s.Pass(t.Context(), m)
	testmodel.WantError(t, err, where, "outside the vocabulary")
	s.Tokens.Sequences = [][]int32{make([]int32, 65)}
	_, err = s.Pass(t.Context(), m)
	testmodel.WantError(t, err, where, "sequence 0 has 65 tokens, but the model takes at most 64: cut it into shorter ones")
}

func TestModelsWithoutALoss(t *testing.T) {
	dir := testmodel.Random(t, "llama-tiny", 1).Dir
	bare := filepath.Join(t.TempDir(), "model.safetensors")
	data, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err == nil {
		err = os.WriteFile(bare, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := evaluate.New(testmodel.Open(t, bare), nil, few(), 0); !errors.Is(err, evaluate.ErrNoConfig) {
		t.Errorf("without config.json: %v", err)
	}
	for _, none := range [][][]int32{nil, {{}}, {{1}, {2}}} {
		if _, err := evaluate.New(testmodel.Open(t, dir), nil, tokens.Set{Part: tokens.Part{Sequences: none}}, 0); !errors.Is(err, evaluate.ErrNoTokens) {
			t.Errorf("with the tokens %v: %v", none, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "mine", "architectures": ["Mine"]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := evaluate.New(testmodel.Open(t, dir), nil, few(), 0); !errors.Is(err, arch.ErrUnknownFamily) || !strings.Contains(err.Error(), "its loss cannot be computed") {
		t.Errorf("of an unknown family: %v", err)
	}
}

// TestCompareKeepsTheFirstLoss: if the second model's pass is interrupted, the loss of the first is not lost.
func TestCompareKeepsTheFirstLoss(t *testing.T) {
	before, after := testmodel.Random(t, "llama-tiny", 1), testmodel.Random(t, "llama-tiny", 2)
	s, err := evaluate.New(before, nil, few(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.Score(t.Context(), before, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	s.Step = func() {
		if steps++; steps > s.Steps() {
			cancel()
		}
	}
	got, err := s.Compare(ctx, before, after, nil)
	if !errors.Is(err, context.Canceled) || got == nil || got.Before != want.Loss() {
		t.Errorf("%+v, %v: the loss of the first model is %v", got, err, want.Loss())
	}
}
