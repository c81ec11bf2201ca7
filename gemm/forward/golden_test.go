package forward_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/weights"
)

// tiny are small models of every kind of arithmetic.
var tiny = []struct {
	name, base string
	changes    fields
}{
	{"llama", "llama-tiny", nil},
	{"llama tied", "llama-tiny", fields{"tie_word_embeddings": true}},
	{"llama with biases", "llama-tiny", fields{"attention_bias": true, "mlp_bias": true}},
	{"llama with one group", "llama-tiny", fields{"num_key_value_heads": 6}},
	{"llama, older fields", "llama-tiny", fields{"rope_parameters": nil, "rope_theta": 500.0, "rope_scaling": nil}},
	{"llama, theta beside", "llama-tiny", fields{"rope_parameters": nil, "rope_theta": 300.0, "rope_scaling": map[string]any{"type": "linear", "factor": 2.5}}},
	{"llama 3.1", "llama-tiny", fields{"rope_parameters": map[string]any{"rope_type": "llama3", "rope_theta": 1000.0, "factor": 8.0,
		"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64.0}}},
	{"gpt2", "gpt2-tiny", nil},
	{"gpt2 untied", "gpt2-tiny", fields{"tie_word_embeddings": false}},
	{"gpt2 with few neurons", "gpt2-tiny", fields{"n_inner": 70, "layer_norm_epsilon": 1e-3}},
}

func TestLossIsThatOfAPlainImplementation(t *testing.T) {
	for _, test := range tiny {
		t.Run(test.name, func(t *testing.T) {
			m, d := model(t, test.base, test.changes)
			prefix := "model."
			if strings.HasPrefix(test.base, "gpt2") {
				prefix = "transformer."
			}
			holdAgainstPlain(t, m, d, newPlain(t, m, prefix))
		})
	}
}

// TestPrefixMayBeAbsent renames the tensors of a model to those of its inner part.
func TestPrefixMayBeAbsent(t *testing.T) {
	dir := synthetic(t, "gpt2-tiny", nil)
	rename(t, filepath.Join(dir, "model.safetensors"), func(name string) string { return strings.TrimPrefix(name, "transformer.") })
	m, d := open(t, dir)
	holdAgainstPlain(t, m, d, newPlain(t, m, ""))
}

func holdAgainstPlain(t *testing.T, m *weights.Model, d *forward.Decoder, p *plain) {
	t.Helper()
	tokens := sequences(96, 9, 2, 32)
	scores := run(t, d, forward.Stored(m), tokens)
	for i, sequence := range tokens {
		logits := p.llama
		if _, ok := p.fields["n_embd"]; ok {
			logits = p.gpt2
		}
		if len(scores.Nats[i]) != len(sequence)-1 {
			t.Fatalf("sequence %d: %d losses for %d tokens", i, len(scores.Nats[i]), len(sequence))
		}
		for at, l := range logits(sequence)[:len(sequence)-1] {
			want := -logSoftmax(l)[sequence[at+1]]
			if got := scores.Nats[i][at]; !(math.Abs(got-want) <= 2e-5*(1+want)) {
				t.Errorf("sequence %d, position %d: loss %v, want %v", i, at, got, want)
			}
		}
	}
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

// TestDivergenceIsThatOfAPlainImplementation changes one layer.
func TestDivergenceIsThatOfAPlainImplementation(t *testing.T) {
	m, d := model(t, "llama-tiny", nil)
	stored := forward.Stored(m)
	other := changed{stored, "lm_head.weight", 0.9}
	tokens := sequences(128, 20, 11)
	ref := end(t, d, stored, tokens)
	got, err := d.Divergence(context.Background(), ref, stored, ref.Clone(), other)
	if err != nil {
		t.Fatal(err)
	}
	want, n := 0.0, 0
	p := newPlain(t, m, "model.")
	for _, sequence := range tokens {
		for _, logits := range p.llama(sequence) {
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
	if same, err := d.Divergence(context.Background(), ref, stored, ref, stored); err != nil || same != 0 {
		t.Errorf("divergence of a state from itself: %v, %v", same, err)
	}
}
