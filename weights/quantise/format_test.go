package quantise_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// TestFormats compares the tensors and configs of every format with those that the format's own tools write.
func TestFormats(t *testing.T) {
	var b strings.Builder
	for _, f := range quantise.Formats() {
		fmt.Fprintf(&b, "== %s\n", f.Name)
		tensors, err := f.Tensors("model.layers.0.mlp.up_proj.weight", 384, 512, weights.BF16)
		testmodel.OK(t, err)
		head, _, err := weights.EncodeHeader(tensors, nil)
		testmodel.OK(t, err)
		b.WriteString(strings.ReplaceAll(strings.TrimSpace(string(head[8:])), "},", "},\n ") + "\n")
		config, err := f.Config([]byte(`{"model_type": "llama"}`), []string{"lm_head", "model.layers.0.mlp.gate"})
		testmodel.OK(t, err)
		b.Write(config)
		files, err := f.Files([]string{"lm_head"})
		testmodel.OK(t, err)
		for _, file := range files {
			fmt.Fprintf(&b, "-- %s\n%s", file.Name, file.Text)
		}
	}
	goldenfile.Same(t, "testdata/formats.txt", []byte(b.String()))
}

func TestParse(t *testing.T) {
	for _, name := range append(quantise.Names(), "int4=64", "gptq=32") {
		f, err := quantise.Parse(name)
		if err != nil || f.String() != name {
			t.Errorf("%s is read as %s, %v", name, f, err)
		}
	}
	for name, want := range map[string]string{
		"int5":      `there is no format "int5" (did you mean`,
		"":          `choose one of fp8, fp8-tensor, fp8-block`,
		"int4=":     "must be a multiple of 8",
		"int4=100":  "must be a multiple of 8",
		"int4=0":    "must be a multiple of 8",
		"int4=-128": "must be a multiple of 8",
		"fp8=128":   "format fp8 takes no group size",
	} {
		_, err := quantise.Parse(name)
		testmodel.WantError(t, err, want)
	}
}

func TestUnfitShapes(t *testing.T) {
	for format, want := range map[string]string{
		"int4":           "m.w.weight has 96 inputs, which is not a multiple of the group size 128 (format int4)",
		"nvfp4":          "",
		"mxfp4":          "",
		"gptq=64":        "96 inputs, which is not a multiple of the group size 64 (format gptq)",
		"awq=32":         "m.w.weight has 100 outputs, which is not a multiple of the 8 outputs that format awq packs into a word",
		"gptq=32":        "100 outputs",
		"modelopt-nvfp4": "",
		"fp8-block":      "",
		"int4-asym=32":   "",
	} {
		f, err := quantise.Parse(format)
		testmodel.OK(t, err)
		switch _, err := f.Tensors("m.w.weight", 100, 96, weights.BF16); {
		case want != "":
			testmodel.WantError(t, err, want)
		case err != nil:
			t.Errorf("%s: %v", format, err)
		}
	}
	f, _ := quantise.Parse("nvfp4")
	_, err := f.Tensors("m.w.weight", 8, 40, weights.BF16)
	testmodel.WantError(t, err, "40 inputs, which is not a multiple of the group size 16 (format nvfp4)")
	_, err = f.Tensors("weight", 8, 64, weights.BF16)
	testmodel.WantError(t, err, "not named as the weight of a module")
}

func TestConfig(t *testing.T) {
	f, _ := quantise.Parse("fp8")
	js, err := f.Config([]byte(`{ "b": 1.50, "quantization_config": null, "a": {"x": [1,  2]} }`), nil)
	testmodel.OK(t, err)
	if !json.Valid(js) || !strings.HasPrefix(string(js), "{\n  \"b\": 1.50,\n  \"a\": {\"x\": [1,  2]},\n  \"quantization_config\": {\n") {
		t.Errorf("%s", js)
	}
	for config, want := range map[string]string{
		`{"quantization_config": {"quant_method": "awq"}}`: "config.json: has a field quantization_config: the model is quantised already",
		`{"compression_config": {}}`:                       "has a field compression_config",
		`[]`:                                               "is not a JSON object",
		`{} {}`:                                            "text follows",
		`{"a": `:                                           "EOF",
	} {
		_, err := f.Config([]byte(config), nil)
		testmodel.WantError(t, err, want)
	}
}

func TestTargets(t *testing.T) {
	for name, want := range map[string]struct {
		weights int
		ignore  []string
	}{
		"llama-tiny":       {14, []string{"lm_head"}},
		"qwen3_moe-tiny":   {2 * (4 + 3*6), []string{"lm_head", "model.layers.0.mlp.gate", "model.layers.1.mlp.gate"}},
		"mixtral-tiny":     {-1, []string{"lm_head", "model.layers.0.block_sparse_moe.gate", "model.layers.1.block_sparse_moe.gate"}},
		"deepseek_v3-tiny": {-1, []string{"lm_head", "model.layers.1.mlp.gate", "model.layers.2.mlp.gate"}},
		"gemma3-tiny":      {-1, []string{"lm_head"}}, // whose tensor is the embedding's
	} {
		got, err := targets(t, name)
		testmodel.OK(t, err)
		if len(got.Weights) != want.weights && want.weights >= 0 || !slices.Equal(got.Ignore, want.ignore) || got.Weights["model.embed_tokens.weight"] {
			t.Errorf("%s: %d weights, ignored %v, want %d and %v", name, len(got.Weights), got.Ignore, want.weights, want.ignore)
		}
	}
	_, err := targets(t, "gpt2-tiny")
	testmodel.WantError(t, err, "is stored as inputs × outputs")
}

func targets(t *testing.T, name string) (*quantise.Targets, error) {
	t.Helper()
	config := testmodel.Config(t, name, "{}")
	f, err := arch.Detect(config)
	testmodel.OK(t, err)
	tensors, err := f.Expect(config)
	testmodel.OK(t, err)
	l, err := f.Resolve(config, tensors)
	testmodel.OK(t, err)
	return quantise.TargetsOf(l, f, tensors, nil)
}
