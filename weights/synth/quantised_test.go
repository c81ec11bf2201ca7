package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// wide returns a config with layers as wide as groups of 128 need.
func wide(t *testing.T, name string, changes string) []byte {
	t.Helper()
	var fields map[string]any
	for _, js := range [][]byte{named(t, name), []byte(changes)} {
		if err := json.Unmarshal(js, &fields); err != nil {
			t.Fatal(err)
		}
	}
	js, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

const wideLlama = `{"hidden_size": 128, "intermediate_size": 256, "head_dim": 32, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 64}`

// TestFormats: package quant finds all linear layers of every format without a contradiction. Their values are close to the
// unquantised model's.
func TestFormats(t *testing.T) {
	config := wide(t, "llama-tiny", wideLlama)
	plain := folderOf(t, config, Options{Seed: 3})
	for name, want := range map[string]struct {
		format string
		snr    float64 // dB, of all weights together
	}{
		"fp8":            {"fp8, per channel (compressed-tensors)", 31},
		"fp8-tensor":     {"fp8, per tensor (compressed-tensors)", 31},
		"fp8-block":      {"fp8, blocks of 128×128 (compressed-tensors)", 31},
		"deepseek-fp8":   {"fp8, blocks of 128×128 (fp8)", 31},
		"fbgemm":         {"fp8, per channel (fbgemm_fp8)", 31},
		"modelopt-fp8":   {"fp8, per tensor (modelopt)", 31},
		"int8":           {"int8, per channel (compressed-tensors)", 35},
		"int4":           {"int4, groups of 128 (compressed-tensors)", 12},
		"int4=32":        {"int4, groups of 32 (compressed-tensors)", 16},
		"int4-asym":      {"int4, groups of 128 (compressed-tensors)", 14},
		"gptq":           {"int4, groups of 128 (gptq)", 12},
		"gptq-v2":        {"int4, groups of 128 (gptq_v2)", 12},
		"gptq-order":     {"int4, groups of 128 (gptq)", 14},
		"awq":            {"int4, groups of 128 (awq)", 14},
		"mxfp4":          {"mxfp4, groups of 32 (compressed-tensors)", 16},
		"nvfp4":          {"nvfp4, groups of 16 (compressed-tensors)", 19},
		"modelopt-nvfp4": {"nvfp4, groups of 16 (modelopt)", 19},
	} {
		format, err := quantise.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		m := folderOf(t, config, Options{Seed: 3, Format: format, ShardBytes: 60_000})
		d, err := quant.Describe(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, want := d.Formats(), "14 weights in "+want.format; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		var signal, noise float64
		for _, w := range d.Weights {
			source, ok := plain.Tensor(w.Name)
			if !ok {
				t.Fatalf("%s: %s is no weight of the unquantised model", name, w.Name)
			}
			values, err := w.Read(0)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			row, original := make([]float32, values.K), make([]float32, values.K)
			f, _ := source.DType.Format()
			for n := range values.N {
				values.Row(row, n)
				f.Decode(original, source.Data[n*2*values.K:])
				for k, v := range original {
					signal += float64(v) * float64(v)
					noise += float64(v-row[k]) * float64(v-row[k])
				}
			}
			for _, part := range w.Tensors {
				if part.Role == quant.ActivationScale && bytes.Count(part.Data, []byte{0}) == len(part.Data) {
					t.Errorf("%s: %s is 0", name, part.Name)
				}
			}
		}
		if snr := 10 * math.Log10(signal/noise); snr < want.snr || snr > want.snr+4 {
			t.Errorf("%s: %.1f dB, want %v and at most 4 more", name, snr, want.snr)
		}
		for _, kept := range []string{"lm_head.weight", "model.embed_tokens.weight", "model.layers.1.input_layernorm.weight"} {
			a, _ := plain.Tensor(kept)
			if b, ok := m.Tensor(kept); !ok || !bytes.Equal(a.Data, b.Data) {
				t.Errorf("%s: %s differs from that of the unquantised model", name, kept)
			}
		}
	}
}

// TestQuantisedRouters: routers are not quantised, and the config says so.
func TestQuantisedRouters(t *testing.T) {
	for name, config := range map[string][]byte{
		"qwen3_moe":   wide(t, "qwen3_moe-tiny", `{"hidden_size": 128, "moe_intermediate_size": 64, "head_dim": 32, "num_attention_heads": 4}`),
		"deepseek_v3": named(t, "deepseek_v3-tiny"),
	} {
		for _, format := range []string{"deepseek-fp8", "gptq=32", "nvfp4", "int4=32"} {
			if name == "deepseek_v3" && !strings.Contains(format, "fp8") {
				continue
			}
			f, err := quantise.Parse(format)
			if err != nil {
				t.Fatal(err)
			}
			m := folderOf(t, config, Options{Format: f})
			d, err := quant.Describe(m)
			if err != nil {
				t.Fatalf("%s as %s: %v", name, format, err)
			}
			const router = "model.layers.1.mlp.gate.weight"
			if t1, ok := m.Tensor(router); !ok || d.Holds(router) || t1.DType != weights.BF16 {
				t.Errorf("%s as %s: the router is quantised", name, format)
			}
			if _, ok := d.Weight("model.layers.1.mlp.experts.2.up_proj.weight"); !ok {
				t.Errorf("%s as %s: an expert is not quantised", name, format)
			}
		}
	}
}

func TestQuantisedBytes(t *testing.T) {
	f, err := quantise.Parse("nvfp4")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][32]byte
	for _, workers := range []int{1, 2, 7} {
		dir := filepath.Join(t.TempDir(), "m")
		if err := Folder(context.Background(), wide(t, "llama-tiny", wideLlama), dir, Options{Format: f, ShardBytes: 60_000, Workers: workers}); err != nil {
			t.Fatal(err)
		}
		got := sums(t, dir)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d workers: (-1 worker +this)\n%s", workers, diff)
		}
	}
}

func TestQuantisedErrors(t *testing.T) {
	parent := t.TempDir()
	for _, test := range []struct {
		config, format string
		dtype          weights.DType
		want           string
	}{
		{"gemma-tiny", "int4", 0, "has 36 inputs, which is not a multiple of the group size 128"},
		{"gpt2-tiny", "fp8", 0, "is stored as inputs × outputs"},
		{"llama-tiny", "fp8", weights.F8E4M3, "give either a format or the type F8_E4M3, not both"},
	} {
		f, err := quantise.Parse(test.format)
		if err != nil {
			t.Fatal(err)
		}
		err = Folder(context.Background(), named(t, test.config), filepath.Join(parent, "out"), Options{Format: f, DType: test.dtype})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
		empty(t, parent)
	}
	// Cancelled: nothing is left.
	f, _ := quantise.Parse("fp8")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := Folder(ctx, named(t, "llama-tiny"), filepath.Join(parent, "out"), Options{Format: f, Progress: func(_, _ int64) { cancel() }})
	if err == nil {
		t.Error("a cancelled call succeeded")
	}
	empty(t, parent)
}

// folderOf makes and opens a model.
func folderOf(t *testing.T, config []byte, o Options) *weights.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "m")
	if err := Folder(context.Background(), config, dir, o); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
