package quantise_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestTarget: a target has the weights that synth writes in its format, in the same codes.
func TestTarget(t *testing.T) {
	config := testmodel.Config(t, "llama-tiny", testmodel.QuantisedShape)
	plain := testmodel.Open(t, testmodel.Folder(t, config, synth.Options{Seed: 4, ShardBytes: 100_000}))
	for _, name := range append(quantise.TargetNames(), "int4=64") {
		f, err := quantise.Parse(name)
		testmodel.OK(t, err)
		target, err := quantise.NewTarget(plain, nil, f, nil)
		testmodel.OK(t, err)
		want := testmodel.Open(t, testmodel.Folder(t, config, synth.Options{Seed: 4, Format: f}))
		d, err := quant.Describe(want)
		testmodel.OK(t, err)
		if a, b := target.Description.Formats(), d.Formats(); a != b {
			t.Fatalf("%s: %s, want %s", name, a, b)
		}
		if !bytes.Contains(target.Config, []byte("quantization_config")) {
			t.Errorf("%s: config %s", name, target.Config)
		}
		if len(target.Shards) != len(plain.Shards) || target.Shards[0].Path != plain.Shards[0].Path {
			t.Errorf("%s: the shards have other names", name)
		}
		for _, w := range d.Weights {
			a, ok := target.Description.Weight(w.Name)
			if !ok {
				t.Fatalf("%s: no weight %s", name, w.Name)
			}
			got, err := a.Read(0)
			testmodel.OK(t, err)
			exp, err := w.Read(0)
			testmodel.OK(t, err)
			if name == "nvfp4" { // fused layers share the global scale; synth gives every layer its own
				partner, _ := target.Description.Weight(strings.NewReplacer("k_proj", "q_proj", "v_proj", "q_proj", "up_proj", "gate_proj").Replace(w.Name))
				if shared, err := partner.Read(0); err != nil || shared.Global != got.Global || got.Global > exp.Global {
					t.Errorf("%s: the global scale is %g, and %g in %s: %v", w.Name, got.Global, shared.Global, partner.Name, err)
				}
				continue
			}
			if !bytes.Equal(got.Codes, exp.Codes) || !slices.Equal(got.Scales, exp.Scales) || !slices.Equal(got.Zeros, exp.Zeros) || got.Global != exp.Global {
				t.Fatalf("%s: %s has other codes or scales", name, w.Name)
			}
		}
		for _, s := range target.Shards {
			for _, info := range s.Tensors {
				if size := int64(info.DType.Bits() / 8); info.Begin%size != 0 {
					t.Errorf("%s: %s begins at byte %d", name, info.Name, info.Begin)
				}
			}
		}
	}
}

// TestTargetRows: rows that are read in pieces equal the whole matrix's rows.
func TestTargetRows(t *testing.T) {
	m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testmodel.QuantisedShape), synth.Options{Seed: 4}))
	for _, name := range []string{"fp8-block", "nvfp4", "int4=32"} {
		f, err := quantise.Parse(name)
		testmodel.OK(t, err)
		target, err := quantise.NewTarget(m, nil, f, nil)
		testmodel.OK(t, err)
		w, _ := quant.Group(target.Model, target.Description).Weight("model.layers.1.mlp.up_proj.weight")
		whole := w.ReadRows(nil, 0, w.Rows)
		for first := 0; first < w.Rows; {
			n := min(w.Rows-first, 1+first*7%50)
			if !bytes.Equal(w.ReadRows(nil, first, n), whole[first*w.RowBytes():(first+n)*w.RowBytes()]) {
				t.Errorf("%s: %d rows from %d on differ from the whole", name, n, first)
			}
			first += n
		}
	}
}

func TestTargetErrors(t *testing.T) {
	llama := testmodel.Config(t, "llama-tiny", testmodel.QuantisedShape)
	narrow := testmodel.Folder(t, testmodel.Config(t, "gemma-tiny", "{}"), synth.Options{})
	int4, _ := quantise.Parse("int4")
	bare := testmodel.Folder(t, llama, synth.Options{})
	testmodel.OK(t, os.Remove(filepath.Join(bare, "config.json")))
	unknown := testmodel.Folder(t, llama, synth.Options{})
	testmodel.OK(t, os.WriteFile(filepath.Join(unknown, "config.json"), []byte(`{"model_type": "abacus"}`), 0o666))
	broken := testmodel.Folder(t, llama, synth.Options{})
	testmodel.OK(t, os.WriteFile(filepath.Join(broken, "config.json"), []byte(`{"model_type": "llama", "quantization_config": 5}`), 0o666))
	for dir, want := range map[string]string{
		broken:  "quantization_config: is not a JSON object",
		narrow:  "36 inputs, which is not a multiple of the group size 128 (format int4): choose a format without groups",
		bare:    "has no config.json, which a quantised checkpoint needs",
		unknown: "the layers to quantise are not known",
		testmodel.Folder(t, testmodel.Config(t, "gpt2-tiny", "{}"), synth.Options{}): "is stored as inputs × outputs",
		testmodel.Folder(t, llama, synth.Options{Format: int4}):                      "is quantised already (14 weights in int4",
	} {
		_, err := quantise.NewTarget(testmodel.Open(t, dir), nil, int4, nil)
		testmodel.WantError(t, err, want)
	}
	gptq, _ := quantise.Parse("gptq")
	_, err := quantise.NewTarget(testmodel.Open(t, testmodel.Folder(t, llama, synth.Options{})), nil, gptq, nil)
	testmodel.WantError(t, err, "models are not converted to the format gptq: choose one of fp8, fp8-block,")
}
