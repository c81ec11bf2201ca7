package forward_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/internal/reference"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestPrefixMayBeAbsent removes the prefix from the names of a model's tensors.
func TestPrefixMayBeAbsent(t *testing.T) {
	m, d := model(t, "gpt2-tiny", nil)
	dir := synthetic(t, "gpt2-tiny", nil)
	rename(t, filepath.Join(dir, "model.safetensors"), func(name string) string { return strings.TrimPrefix(name, "transformer.") })
	inner, di := open(t, dir)
	tokens := sequences(96, 9, 2, 32)
	if diff := cmp.Diff(run(t, d, forward.Stored(m), tokens), run(t, di, forward.Stored(inner), tokens)); diff != "" {
		t.Errorf("(-with prefix +without)\n%s", diff)
	}
}

// logits returns the logits of the reference implementation.
func logits(t *testing.T, m *weights.Model, sequence []int32) [][]float64 {
	t.Helper()
	rows, err := reference.Run(m, reference.Inputs{Tokens: sequence})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func holdAgainstPlain(t *testing.T, m *weights.Model, d *forward.Decoder) {
	t.Helper()
	tokens := sequences(64, 9, 2, 32)
	scores := run(t, d, forward.Stored(m), tokens)
	for i, sequence := range tokens {
		if len(scores.Nats[i]) != len(sequence)-1 {
			t.Fatalf("sequence %d: %d losses for %d tokens", i, len(scores.Nats[i]), len(sequence))
		}
		for at, l := range logits(t, m, sequence)[:len(sequence)-1] {
			want := -logSoftmax(l)[sequence[at+1]]
			if got := scores.Nats[i][at]; !(math.Abs(got-want) <= 2e-5*(1+want)) {
				t.Errorf("sequence %d, position %d: loss %v, want %v", i, at, got, want)
			}
		}
	}
}

// logSoftmax returns the logarithm of the probabilities.
func logSoftmax(logits []float64) []float64 {
	total := 0.0
	for _, v := range logits {
		total += math.Exp(v)
	}
	out := make([]float64, len(logits))
	for i, v := range logits {
		out[i] = v - math.Log(total)
	}
	return out
}

// rename writes a safetensors file anew with other names.
func rename(t *testing.T, path string, name func(string) string) {
	t.Helper()
	f, err := weights.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	infos := append([]weights.Info(nil), f.Tensors...)
	for i := range infos {
		infos[i].Name = name(infos[i].Name)
	}
	head, _, err := weights.EncodeHeader(infos, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", append(head, f.Data()...), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestDivergenceIsThatOfTheReferenceModel changes one layer.
func TestDivergenceIsThatOfTheReferenceModel(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	stored := forward.Stored(m)
	other := changed{stored, "lm_head.weight", 0.9}
	tokens := sequences(128, 20, 11)
	ref := pass(t, d, stored, tokens, forward.Keep{})
	got, _, err := d.Divergence(context.Background(), ref, ref.End.Clone(), other)
	if err != nil {
		t.Fatal(err)
	}
	want, n := 0.0, 0
	for _, sequence := range tokens {
		for _, logits := range logits(t, m, sequence) {
			scaled := make([]float64, len(logits))
			for i := range logits {
				scaled[i] = float64(float32(0.9)) * logits[i]
			}
			from, to := logSoftmax(logits), logSoftmax(scaled)
			for i := range from {
				want += math.Exp(from[i]) * (from[i] - to[i])
			}
			n++
		}
	}
	if want /= float64(n); !(math.Abs(got-want) <= 1e-4*want) {
		t.Errorf("divergence %v, want %v", got, want)
	}
	if same, _, err := d.Divergence(context.Background(), ref, ref.End, stored); err != nil || same != 0 {
		t.Errorf("divergence of a state from itself: %v, %v", same, err)
	}
}
