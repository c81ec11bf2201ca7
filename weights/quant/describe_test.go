package quant_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

func describe(t *testing.T, dir string) (*quant.Description, error) {
	t.Helper()
	return quant.Describe(testmodel.Open(t, dir))
}

func layout(t *testing.T, name string) testmodel.Quantisation {
	t.Helper()
	for _, q := range testmodel.Quantisations {
		if q.Name == name {
			return q
		}
	}
	t.Fatalf("no layout %q", name)
	return testmodel.Quantisation{}
}

// TestLayouts: in every layout each linear layer is one weight, with the shape of its values and every tensor that belongs to it,
// with and without a config.
func TestLayouts(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		for _, config := range []string{"", "none"} {
			if strings.HasPrefix(q.Name, "unknown") && config == "none" {
				continue
			}
			d, err := describe(t, testmodel.Quantised(t, q, testmodel.With{Config: config}))
			if err != nil {
				t.Errorf("%s: %v", q.Name, err)
				continue
			}
			if len(d.Weights) != 14 {
				t.Errorf("%s: %d weights, want 7 in 2 blocks", q.Name, len(d.Weights))
			}
			w, ok := d.Weight("model.layers.1.mlp.down_proj.weight")
			if !ok {
				t.Fatalf("%s: down_proj is not quantised", q.Name)
			}
			if want := q.Tensors(128, 256); len(w.Tensors) != len(want) || !strings.HasSuffix(w.Tensors[0].Name, want[0].Name) {
				t.Errorf("%s: %s has %d tensors, the first %s, want %d, %s", q.Name, w.Name, len(w.Tensors), w.Tensors[0].Name, len(want), want[0].Name)
			}
			if config == "" && w.Format.String() != q.Format {
				t.Errorf("%s: format %q, want %q", q.Name, w.Format, q.Format)
			}
			known := !strings.HasPrefix(q.Name, "unknown") && q.Name != "bitsandbytes nf4" && (config == "" || !strings.HasPrefix(q.Name, "pack"))
			if known && (len(w.Shape) != 2 || w.Shape[0] != 128 || w.Shape[1] != 256) || !known && w.Shape != nil {
				t.Errorf("%s with config %q: shape %v", q.Name, config, w.Shape)
			}
			if err := w.CanRead(); config == "none" && strings.HasPrefix(q.Name, "pack") {
				if err == nil || !strings.Contains(err.Error(), "no config gives the bits of a code: put config.json with its quantization_config beside the weights") {
					t.Errorf("%s without a config: %v", q.Name, err)
				}
			} else if config == "none" && strings.HasPrefix(q.Name, "gptq") {
				if err == nil || !strings.Contains(err.Error(), "no config gives the version of GPTQ's layout, and the zero points of the two versions differ by 1: put config.json with") {
					t.Errorf("%s without a config: %v", q.Name, err)
				}
			}
			total := 0
			for _, g := range d.Copied() {
				total += g.Tensors
				if g.Bytes == 0 || len(g.Names) == 0 || strings.ContainsAny(g.Names[0], "01") || g.Role == quant.Other && known && q.Name != "bitsandbytes int8" {
					t.Errorf("%s: %+v", q.Name, g)
				}
			}
			if want := 14 * len(w.Tensors); total != want {
				t.Errorf("%s: %d tensors are copied, want %d", q.Name, total, want)
			}
			if d.Holds("lm_head.weight") || d.Holds("model.norm.weight") || d.Holds("model.embed_tokens.weight") {
				t.Errorf("%s: an unquantised tensor is taken for a quantised one", q.Name)
			}
		}
	}
}

// TestUnquantised: names that only look like names of scales belong to no weight.
func TestUnquantised(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	writeFile(t, path,
		tensor{"logit_scale", weights.F32, nil},
		tensor{"model.norm.scale", weights.BF16, []int{64}},
		tensor{"model.logit", weights.BF16, []int{64, 64}},
		tensor{"model.logit_scale", weights.BF16, []int{64}},
		tensor{"model.layer_scale", weights.BF16, []int{64}},
		tensor{"blocks_scales", weights.BF16, []int{64}},
		tensor{"model.scales", weights.BF16, []int{8, 64}},
		tensor{"model.up.weight", weights.F8E4M3, []int{64, 64}},
		tensor{"model.down.weight", weights.I8, []int{64, 64}},
		tensor{"mask", weights.U8, []int{64, 64}})
	if d, err := describe(t, path); err != nil || d.Any() || len(d.Copied()) > 0 || d.Formats() != "" {
		t.Errorf("%+v, %v", d, err)
	}
	var none *quant.Description
	if none.Any() || none.Holds("x") || none.Copied() != nil || none.Formats() != "" {
		t.Error("a nil description holds something")
	}
}

// TestActivationScales: scales of activations belong to the weight of their module, or to no weight.
func TestActivationScales(t *testing.T) {
	d, err := describe(t, testmodel.Quantised(t, layout(t, "fbgemm"), testmodel.With{Change: also(
		weights.Info{Name: "model.layers.0.mlp.down_proj.input_scale_ub", DType: weights.F32, Shape: []int{1}},
		weights.Info{Name: "model.layers.0.self_attn.k_scale", DType: weights.F32},
		weights.Info{Name: "model.layers.0.self_attn.logit_scale", DType: weights.F32},
		weights.Info{Name: "model.layers.0.mlp.up_proj.bias", DType: weights.BF16, Shape: []int{256}})}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"model.layers.0.mlp.down_proj.input_scale_ub": "fp8, per channel (fbgemm_fp8) activation scale",
		"model.layers.0.self_attn.k_scale":            "activations (fbgemm_fp8) activation scale",
	} {
		if f, role, ok := d.Tensor(name); !ok || f.String()+" "+string(role) != want {
			t.Errorf("%s: %v %s, want %s", name, f, role, want)
		}
	}
	if d.Holds("model.layers.0.self_attn.logit_scale") || d.Holds("model.layers.0.mlp.up_proj.bias") || len(d.Others) != 1 {
		t.Errorf("others are %v", d.Others)
	}
}

// TestBlocks: gpt-oss stores the experts of a layer in one tensor.
func TestBlocks(t *testing.T) {
	dir := experts(t, []int{4, 96, 2, 16}, []int{4, 96, 2})
	d, err := describe(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := d.Weight("model.layers.0.mlp.experts.gate_up_proj")
	if !ok || w.Format.String() != "mxfp4, groups of 32 (mxfp4)" || len(w.Shape) != 3 || w.Shape[2] != 64 || len(w.Tensors) != 2 {
		t.Errorf("%+v", w)
	}
	if d.Holds("model.layers.0.mlp.experts.gate_up_proj_bias") {
		t.Error("the bias is taken for a part of the codes")
	}
	_, err = describe(t, experts(t, []int{4, 96, 2, 16}, []int{4, 96, 3}))
	testmodel.WantError(t, err, "model.safetensors", "gate_up_proj_scales", "[4 96 3]", "[4 96 2]")
}

func experts(t *testing.T, blocks, scales []int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const name = "model.layers.0.mlp.experts.gate_up_proj"
	writeFile(t, filepath.Join(dir, "model.safetensors"), tensor{name + "_blocks", weights.U8, blocks}, tensor{name + "_scales", weights.U8, scales},
		tensor{name + "_bias", weights.BF16, []int{4, 96}}, tensor{"model.layers.0.self_attn.q_proj.weight", weights.BF16, []int{64, 64}})
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}`), 0o666))
	return dir
}

// without leaves out a tensor of one layer.
func without(end string) func([]weights.Info) []weights.Info {
	return func(infos []weights.Info) (kept []weights.Info) {
		for _, i := range infos {
			if !strings.HasSuffix(i.Name, "layers.1.mlp.down_proj."+end) {
				kept = append(kept, i)
			}
		}
		return kept
	}
}

// as gives a tensor of one layer another type and shape.
func as(end string, d weights.DType, shape ...int) func([]weights.Info) []weights.Info {
	return func(infos []weights.Info) []weights.Info {
		for i := range infos {
			if strings.HasSuffix(infos[i].Name, "layers.1.mlp.down_proj."+end) {
				infos[i].DType, infos[i].Shape = d, shape
			}
		}
		return infos
	}
}

// also adds tensors.
func also(more ...weights.Info) func([]weights.Info) []weights.Info {
	return func(infos []weights.Info) []weights.Info { return append(infos, more...) }
}

// TestContradictions: the error for each contradiction names the tensor, its file, and the field of the config.
func TestContradictions(t *testing.T) {
	const down = `tensor "model.layers.1.mlp.down_proj.`
	for _, test := range []struct {
		layout string
		with   testmodel.With
		want   []string
	}{
		// scales missing
		{"compressed fp8 channel", testmodel.With{Change: without("weight_scale")}, []string{down + `weight"`, `no tensor "model.layers.1.mlp.down_proj.weight_scale" in any shard`, `quantization_config.quant_method is "compressed-tensors"`}},
		{"fp8 block", testmodel.With{Change: without("weight_scale_inv")}, []string{down + `weight"`, `down_proj.weight_scale_inv" in any shard`, `quant_method is "fp8"`}},
		{"fp8 block", testmodel.With{Config: "none", Change: without("weight_scale_inv")}, []string{down + `weight"`, "other weights have scales"}},
		{"compressed int8", testmodel.With{Change: without("weight_scale")}, []string{down + `weight"`, "I8[128 256] without scales"}},
		{"modelopt nvfp4", testmodel.With{Change: without("weight_scale")}, []string{down + `weight`, "scale"}},
		{"modelopt nvfp4", testmodel.With{Change: without("weight_scale_2")}, []string{down + `weight"`, "without its global scale", `"model.layers.1.mlp.down_proj.weight_scale_2"`}},
		{"pack-quantized", testmodel.With{Change: without("weight_scale")}, []string{down + `weight_packed"`, "without its scales"}},
		{"compressed nvfp4", testmodel.With{Change: without("weight_global_scale")}, []string{down + `weight_packed"`, `"model.layers.1.mlp.down_proj.weight_global_scale"`}},
		{"gptq", testmodel.With{Change: without("scales")}, []string{down + `qweight"`, "without its scales", `down_proj.scales" in any shard`}},
		{"gptq", testmodel.With{Change: without("qzeros")}, []string{down + `qweight"`, "without its zero points"}},
		{"gptq", testmodel.With{Change: without("qweight")}, []string{down + `qzeros"`, "no tensor holds the codes"}},
		{"bitsandbytes nf4", testmodel.With{Change: without("weight.absmax")}, []string{down + `weight"`, "without its scales"}},
		// another shape or type
		{"compressed fp8 tensor", testmodel.With{Change: as("weight_scale", weights.BF16, 3)}, []string{down + `weight_scale"`, "has shape [3]", "weights.strategy implies one scale per tensor"}},
		{"compressed fp8 channel", testmodel.With{Change: as("weight_scale", weights.BF16, 64, 1)}, []string{down + `weight_scale"`, "has shape [64 1]", "[128 1]", "config_groups.group_0.weights.strategy implies one scale per channel"}},
		{"compressed fp8 channel", testmodel.With{Change: as("weight_scale", weights.I32, 128, 1)}, []string{down + `weight_scale"`, "in type I32 instead of BF16, F16, F32 or F8_E8M0"}},
		{"fbgemm", testmodel.With{Change: as("weight_scale", weights.F32, 1)}, []string{down + `weight_scale"`, "[128 1]"}},
		{"modelopt fp8", testmodel.With{Change: as("weight_scale", weights.F32, 128)}, []string{down + `weight_scale"`, "quant_algo implies one scale per tensor"}},
		{"modelopt nvfp4", testmodel.With{Change: as("weight_scale", weights.F8E4M3, 128, 8)}, []string{down + `weight_scale"`, "[128 16]", "a group has 16 values"}},
		{"compressed mxfp4", testmodel.With{Change: as("weight_scale", weights.U8, 128, 4)}, []string{down + `weight_scale"`, "[128 8]"}},
		{"pack-quantized", testmodel.With{Change: as("weight_shape", weights.I64, 3)}, []string{down + `weight_shape"`, "[2]"}},
		{"pack-quantized asymmetric", testmodel.With{Change: as("weight_zero_point", weights.I32, 128, 4)}, []string{down + `weight_zero_point"`, "[16 8]"}},
		{"gptq", testmodel.With{Change: as("g_idx", weights.I32, 100)}, []string{down + `g_idx"`, "[256]"}},
		{"gptq", testmodel.With{Change: as("scales", weights.F16, 4, 100)}, []string{down + `scales"`, "[4 128]"}},
		{"gptq", testmodel.With{Change: as("qweight", weights.I64, 32, 128)}, []string{down + `qweight"`, "in type I64 instead of I32"}},
		{"awq", testmodel.With{Change: as("scales", weights.F16, 4, 64)}, []string{down + `q`, "has rows of 512 bits"}},
		{"awq", testmodel.With{Change: as("qzeros", weights.I32, 4, 8)}, []string{down + `qzeros"`, "[4 16]"}},
		{"bitsandbytes int8", testmodel.With{Change: as("SCB", weights.F32, 5)}, []string{down + `SCB"`, "[128]"}},
		// sizes that differ between config and tensors, or are no multiples of the group size
		{"fp8 block", testmodel.With{Config: `{"quant_method": "fp8", "weight_block_size": [64, 128]}`}, []string{"weight_scale_inv", "quantization_config.weight_block_size is [64, 128]"}},
		{"compressed fp8 block", testmodel.With{Config: compressedWith("float-quantized", `{"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [32, 32]}`)},
			[]string{"weight_scale", "block_structure is [32, 32]"}},
		{"compressed fp8 channel", testmodel.With{Config: compressedWith("int-quantized", `{"num_bits": 8, "type": "int", "strategy": "channel"}`)}, []string{"holds fp8 codes", "config_groups.group_0.weights implies int8"}},
		{"pack-quantized", testmodel.With{Config: compressedWith("pack-quantized", `{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 48}`)}, []string{"not a multiple of the group size 48", "weights.group_size is 48"}},
		{"pack-quantized", testmodel.With{Config: compressedWith("pack-quantized", `{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64}`)}, []string{"weight_scale", "weights.group_size is 64"}},
		{"pack-quantized", testmodel.With{Config: compressedWith("pack-quantized", `{"num_bits": 3, "type": "int", "strategy": "group", "group_size": 32}`)}, []string{"weight_packed", "not a multiple of the code's 3 bits", "weights.num_bits)"}},
		{"gptq", testmodel.With{Config: `{"quant_method": "gptq", "bits": 4, "group_size": 48}`}, []string{"qweight", "not a multiple of the group size 48", "quantization_config.group_size is 48"}},
		{"gptq", testmodel.With{Config: `{"quant_method": "gptq", "bits": 4, "group_size": 32}`}, []string{"scales", "quantization_config.group_size is 32"}},
		{"gptq", testmodel.With{Config: `{"quant_method": "gptq", "bits": 8, "group_size": 64}`}, []string{"qweight", "zero points of 4 bits", "quantization_config.bits is 8; 13 other tensors have the same problem"}},
		{"gptq", testmodel.With{Config: `{"quant_method": "gptq", "bits": 3, "group_size": 64}`}, []string{"qweight", "zero points of 4 bits", "quantization_config.bits is 3"}},
		{"pack-quantized", testmodel.With{Config: compressedWith("pack-quantized", `{"num_bits": 8, "type": "int", "strategy": "group", "group_size": 32}`)}, []string{"weight_packed", "holds codes of 4 bits", `"model.layers.0.self_attn.q_proj.weight_shape"`, "weights.num_bits is 8"}},
		{"pack-quantized asymmetric", testmodel.With{Change: without("weight_zero_point")}, []string{down + `weight_packed"`, `no tensor "model.layers.1.mlp.down_proj.weight_zero_point"`, "weights.symmetric is false"}},
		{"awq", testmodel.With{Config: `{"quant_method": "awq", "bits": 8, "group_size": 64}`}, []string{"qweight", "quantization_config.bits is 8"}},
		{"modelopt nvfp4", testmodel.With{Config: `{"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 32}`}, []string{"weight_scale", "quantization_config.group_size is 32"}},
		// another layout than the config's
		{"gptq", testmodel.With{Config: `{"quant_method": "awq", "bits": 4, "group_size": 64}`}, []string{"qweight", "the layout of gptq", `quant_method is "awq"`}},
		{"fp8 block", testmodel.With{Config: `{"quant_method": "fbgemm_fp8"}`}, []string{"weight", "the layout of fp8", `quant_method is "fbgemm_fp8"`}},
		{"modelopt fp8", testmodel.With{Config: `{"quant_method": "modelopt", "quant_algo": "NVFP4"}`}, []string{"holds fp8 codes", "quantization_config.quant_algo implies nvfp4"}},
		{"modelopt fp8", testmodel.With{Keep: []string{"layers"}}, []string{`tensor "model.embed_tokens.weight"`, "no tensor of the folder holds codes", `quant_method is "modelopt"`}},
		{"fp8 block", testmodel.With{Config: `{"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["model.layers.1.mlp.down_proj"]}`},
			[]string{down + `weight"`, "quantization_config.modules_to_not_convert", `lists "model.layers.1.mlp.down_proj"`}},
		{"compressed fp8 tensor", testmodel.With{Config: strings.Replace(layout(t, "compressed fp8 tensor").Config, `"lm_head"`, `"re:.*down_proj"`, 1)}, []string{`quantization_config.ignore lists "re:.*down_proj"`}},
		{"compressed fp8 tensor", testmodel.With{Change: as("weight", weights.BF16, 128, 256)}, []string{down + `weight_scale"`, "down_proj.weight\" (BF16[128 256]) holds no codes"}},
		// two formats in one folder
		{"fp8 block", testmodel.With{Config: "none", Change: also(weights.Info{Name: "a.qweight", DType: weights.I32, Shape: []int{8, 64}}, weights.Info{Name: "a.scales", DType: weights.F16, Shape: []int{1, 64}})},
			[]string{`tensor "a.qweight"`, "the layout of gptq", "that of fp8: the folder mixes two formats"}},
		{"fp8 block", testmodel.With{Change: also(weights.Info{Name: "a.qweight", DType: weights.I32, Shape: []int{8, 64}}, weights.Info{Name: "a.scales", DType: weights.F16, Shape: []int{1, 64}})},
			[]string{`tensor "a.qweight"`, "the layout of gptq", `quant_method is "fp8"`}},
	} {
		name := test.layout + " " + strings.Join(test.want, ", ")
		_, err := describe(t, testmodel.Quantised(t, layout(t, test.layout), test.with))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range append(test.want, ".safetensors: ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s:\n%v\nlacks %q", name, err, want)
			}
		}
	}
}

func compressedWith(format, weightsJSON string) string {
	return `{"quant_method": "compressed-tensors", "format": "` + format + `", "config_groups": {"group_0": {"targets": ["Linear"], "weights": ` + weightsJSON + `}}}`
}

// TestUnknownConfigs: an unknown layout is taken without checks.
func TestUnknownConfigs(t *testing.T) {
	for name, config := range map[string]string{
		"gptq":           `{"quant_method": "gptq", "checkpoint_format": "marlin", "bits": 3, "group_size": 7}`,
		"awq":            `{"quant_method": "awq", "version": "gemv", "bits": 4, "group_size": 9}`,
		"pack-quantized": compressedWith("marlin-24", `{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 5}`),
		"modelopt nvfp4": `{"quant_method": "modelopt", "quant_algo": "W4A8_MXFP4_FP8"}`,
		"gptq v2":        `{"quant_method": "gptq", "is_marlin_format": true, "bits": 3}`,
		"compressed fp8 channel": `{"quant_method": "compressed-tensors", "format": "float-quantized", "sparsity_config": {"format": "sparse-24-bitmask"},
			"config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}}}`,
		"fp8 block": `{"quant_method": "a new one", "weight_block_size": "any"}`,
	} {
		d, err := describe(t, testmodel.Quantised(t, layout(t, name), testmodel.With{Config: config}))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		w, ok := d.Weight("model.layers.1.mlp.down_proj.weight")
		if !ok || w.Shape != nil || w.Format.Codes != "" || !strings.Contains(d.Formats(), "14 weights in unknown format") {
			t.Errorf("%s: %+v, %s", config, w, d.Formats())
		}
	}
}

// TestSideFiles: two files with different values are an error that names both.
func TestSideFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"gptq":         {"quantize_config.json", `{"bits": 8, "group_size": 64}`, []string{"quantization_config.bits is 4", "quantize_config.json: bits is 8"}},
		"gptq v2":      {"quantize_config.json", `{"bits": 4, "group_size": 128}`, []string{"quantization_config.group_size is 64", "quantize_config.json: group_size is 128"}},
		"awq":          {"quantize_config.json", `{"bits": 4, "quant_method": "gptq"}`, []string{`quantization_config.quant_method is "awq"`, `quantize_config.json: quant_method is "gptq"`}},
		"modelopt fp8": {"hf_quant_config.json", `{"quantization": {"quant_algo": "NVFP4"}}`, []string{"quantization_config.quant_algo is FP8", "hf_quant_config.json: quantization.quant_algo is NVFP4"}},
		"fbgemm":       {"hf_quant_config.json", `{"quantization": [`, []string{"hf_quant_config.json", "ends too early"}},
	} {
		dir := testmodel.Quantised(t, layout(t, name), testmodel.With{})
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o666))
		_, err := describe(t, dir)
		testmodel.WantError(t, err, c.want...)
	}
	// A field that one of them lacks is no contradiction.
	for config, side := range map[string]string{
		`{"quant_method": "gptq", "group_size": 64}`:            `{"bits": 4, "group_size": 64}`,
		`{"quant_method": "gptq", "bits": 4}`:                   `{"bits": 4, "group_size": 64}`,
		`{"quant_method": "gptq", "bits": 4, "group_size": 64}`: `{"quant_method": "gptq"}`,
	} {
		dir := testmodel.Quantised(t, layout(t, "gptq"), testmodel.With{Config: config})
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, "quantize_config.json"), []byte(side), 0o666))
		if _, err := describe(t, dir); err != nil {
			t.Errorf("%s and %s: %v", config, side, err)
		}
	}
	// A side file alone is enough.
	dir := testmodel.Quantised(t, layout(t, "gptq"), testmodel.With{Config: "none"})
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, "quantize_config.json"), []byte(`{"bits": 4, "group_size": 48}`), 0o666))
	_, err := describe(t, dir)
	testmodel.WantError(t, err, "not a multiple of the group size 48", "quantize_config.json: group_size is 48")
}

// TestBadConfigs: fields of another type are errors that name the field and the value.
func TestBadConfigs(t *testing.T) {
	for config, want := range map[string]string{
		`{"quant_method": 4}`: `quantization_config.quant_method is 4, not a string`,
		`[]`:                  `quantization_config: is not a JSON object`,
		`{"quant_method": "gptq", "bits": "four"}`:                                 `quantization_config.bits is "four", not a whole number from 1 to 32`,
		`{"quant_method": "gptq", "bits": 4.5}`:                                    `quantization_config.bits is 4.5`,
		`{"quant_method": "gptq", "bits": 0}`:                                      `quantization_config.bits is 0`,
		`{"quant_method": "gptq", "bits": 4, "group_size": -2}`:                    `quantization_config.group_size is -2`,
		`{"quant_method": "gptq", "bits": 4, "group_size": 99999999999}`:           `quantization_config.group_size is 99999999999`,
		`{"quant_method": "gptq", "bits": 4, "bits": 8}`:                           `key "bits" appears twice`,
		`{"quant_method": "fp8", "weight_block_size": [128]}`:                      `weight_block_size is [128], not a list of two whole numbers`,
		`{"quant_method": "fp8", "weight_block_size": [0, 128]}`:                   `weight_block_size is [0,128]`,
		`{"quant_method": "fp8", "modules_to_not_convert": "lm_head"}`:             `modules_to_not_convert is "lm_head", not a list of strings`,
		`{"quant_method": "compressed-tensors", "config_groups": {"a": 1}}`:        `quantization_config.config_groups.a is 1, not an object`,
		compressedWith("pack-quantized", `{"num_bits": true}`):                     `config_groups.group_0.weights.num_bits is true`,
		compressedWith("pack-quantized", `{"num_bits": 4, "group_size": {"a":1}}`): `weights.group_size is {"a":1}`,
		`{"a": ` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`:         `nested more than 32 levels deep`,
	} {
		dir := testmodel.Quantised(t, layout(t, "gptq v2"), testmodel.With{Config: "none"})
		js, err := os.ReadFile(filepath.Join(dir, "config.json"))
		testmodel.OK(t, err)
		js = append(js[:len(js)-1], `, "quantization_config": `+config+`}`...)
		if !json.Valid(js) {
			t.Fatal(config)
		}
		testmodel.OK(t, os.WriteFile(filepath.Join(dir, "config.json"), js, 0o666))
		_, err = describe(t, dir)
		testmodel.WantError(t, err, "config.json: quantization_config", want)
	}
}
