package quantise_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestLargeTarget: a layer that is quantised in several pieces has the same matrix as its blocks of rows, quantised one by
// one.
func TestLargeTarget(t *testing.T) {
	config := testmodel.Config(t, "llama-tiny", `{"hidden_size": 4096, "intermediate_size": 640, "head_dim": 32, "num_attention_heads": 1, "num_key_value_heads": 1, "vocab_size": 8, "num_hidden_layers": 1}`)
	m := testmodel.Open(t, testmodel.Folder(t, config, synth.Options{Seed: 4}))
	for _, name := range []string{"fp8", "fp8-block", "int4-asym", "nvfp4"} {
		f, err := quantise.Parse(name)
		testmodel.OK(t, err)
		target, err := quantise.NewTarget(m, nil, f, nil)
		testmodel.OK(t, err)
		w, ok := target.Description.Weight("model.layers.0.mlp.up_proj.weight")
		if !ok || w.Shape[0] != 640 {
			t.Fatalf("%s: %+v", name, w)
		}
		whole, err := w.Read(0)
		testmodel.OK(t, err)
		testmodel.OK(t, w.Check())
		rows := max(1, w.Format.Block[0])
		for first := 0; first < 640; first += rows * max(1, 64/rows) {
			part := w.Make(0, first, rows)
			from := first / rows * whole.Columns()
			if !bytes.Equal(part.Codes, whole.Codes[first*whole.K:][:len(part.Codes)]) || !slices.Equal(part.Scales, whole.Scales[from:][:len(part.Scales)]) ||
				part.Zeros != nil && !slices.Equal(part.Zeros, whole.Zeros[from:][:len(part.Zeros)]) || part.Global != whole.Global {
				t.Errorf("%s: rows from %d on differ from the whole", name, first)
			}
		}
	}
}

// oddModel returns a folder with a llama of one layer, changed by change.
func oddModel(t *testing.T, change func(fields map[string][]weights.Info)) string {
	t.Helper()
	config := testmodel.Config(t, "llama-tiny", testmodel.QuantisedShape)
	dir := testmodel.Folder(t, config, synth.Options{Seed: 4})
	m := testmodel.Open(t, dir)
	files := map[string][]weights.Info{"model.safetensors": slices.Clone(m.Infos())}
	change(files)
	for name, infos := range files {
		for i := range infos {
			infos[i].Begin, infos[i].End = 0, 0
		}
		head, placed, err := weights.EncodeHeader(infos, nil)
		testmodel.OK(t, err)
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, name), append(head, make([]byte, placed[len(placed)-1].End)...), 0o666))
	}
	return dir
}

// TestUnfitModels: models that a format cannot hold are refused. A weight that stays unquantised must not be fused with a
// quantised weight.
func TestUnfitModels(t *testing.T) {
	fp8, _ := quantise.Parse("fp8")
	adapter := oddModel(t, func(files map[string][]weights.Info) {
		files["adapter_model.safetensors"] = []weights.Info{{Name: "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", DType: weights.F32, Shape: []int{4, 128}}}
	})
	testmodel.OK(t, os.WriteFile(filepath.Join(adapter, "adapter_config.json"), []byte(`{"peft_type": "LORA"}`), 0o666))
	_, err := quantise.NewTarget(testmodel.Open(t, adapter), nil, fp8, nil)
	testmodel.WantError(t, err, "adapter_model.safetensors", "is an adapter, and models with an adapter cannot be quantised")

	integers := oddModel(t, func(files map[string][]weights.Info) {
		infos := files["model.safetensors"]
		i := slices.IndexFunc(infos, func(x weights.Info) bool { return strings.HasSuffix(x.Name, "layers.1.mlp.up_proj.weight") })
		infos[i].DType = weights.I16
	})
	_, err = quantise.NewTarget(testmodel.Open(t, integers), nil, fp8, nil)
	testmodel.WantError(t, err, "model.layers.1.mlp.up_proj.weight is I16, but only BF16, F16 and F32 weights can be quantised")

	plain := testmodel.Open(t, oddModel(t, func(map[string][]weights.Info) {}))
	for part, want := range map[string]string{
		"down_proj": "", "o_proj": "", "self_attn": "",
		"gate_proj":      "model.layers.0.mlp.up_proj.weight would be quantised and model.layers.0.mlp.gate_proj not, but runtimes fuse the two",
		"1.mlp.up_":      "model.layers.1.mlp.gate_proj.weight would be quantised and model.layers.1.mlp.up_proj not, but runtimes fuse the two",
		"0.self_attn.v_": "model.layers.0.self_attn.k_proj.weight would be quantised and model.layers.0.self_attn.v_proj not, but runtimes fuse the two",
		"layers":         "exclude every linear layer that can be quantised (layers: 14): change the patterns",
	} {
		target, err := quantise.NewTarget(plain, nil, fp8, func(name string) bool { return strings.Contains(name, part) })
		if want != "" {
			testmodel.WantError(t, err, want)
			continue
		}
		testmodel.OK(t, err)
		for _, w := range target.Description.Weights {
			if strings.Contains(w.Name, part) {
				t.Errorf("%s is quantised, and was to stay", w.Name)
			}
		}
	}
	_, err = quantise.TargetsOf(nil, nil, nil, nil)
	testmodel.WantError(t, err, "give both")
	family, err := arch.Detect(plain.Config)
	testmodel.OK(t, err)
	if again, err := quantise.NewTarget(plain, family, fp8, nil); err != nil || len(again.Description.Weights) != 14 || len(again.Left) != 0 {
		t.Errorf("with its family: %v", err)
	}
}

// TestCheckFindsOddValues: Check names an element that no code stands for, in any place and of any type.
func TestCheckFindsOddValues(t *testing.T) {
	const name = "model.layers.1.mlp.up_proj.weight"
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F32} {
		dir := oddModel(t, func(files map[string][]weights.Info) {
			infos := files["model.safetensors"]
			i := slices.IndexFunc(infos, func(x weights.Info) bool { return x.Name == name })
			infos[i].DType = d
		})
		f, _ := quantise.Parse("int8")
		m := testmodel.Open(t, dir)
		target, err := quantise.NewTarget(m, nil, f, nil)
		testmodel.OK(t, err)
		testmodel.OK(t, target.Check(t.Context(), m, 2))
		shape, _ := m.Tensor(name)
		for _, at := range []int{0, shape.Len() - 1} {
			for _, v := range []float64{math.NaN(), math.Inf(-1)} {
				data := bytes.Clone(shape.Data)
				switch d {
				case weights.F32:
					binary.LittleEndian.PutUint32(data[4*at:], math.Float32bits(float32(v)))
				case weights.BF16:
					binary.LittleEndian.PutUint16(data[2*at:], uint16(math.Float32bits(float32(v))>>16))
				default:
					binary.LittleEndian.PutUint16(data[2*at:], map[bool]uint16{true: 0xFC00, false: 0x7E00}[v < 0])
				}
				odd, err := weights.Arrange("odd", []weights.Info{{Name: name, DType: d, Shape: shape.Shape}}, nil, func(weights.Info) []byte { return data })
				testmodel.OK(t, err)
				one := *target
				one.Description = &quant.Description{Weights: []*quant.Quantised{{Name: name}}}
				err = one.Check(t.Context(), &weights.Model{Shards: []*weights.File{odd}}, 1)
				testmodel.WantError(t, err, `odd: tensor "`+name+`": element `, "which no code represents")
			}
		}
	}
}
