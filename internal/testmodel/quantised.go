package testmodel

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// Quantisation is a layout of quantised checkpoints.
type Quantisation struct {
	Name   string
	Format string // in the wording of quant.Format
	Config string // JSON of quantization_config
	// Side is a second file with the same configuration; empty if the layout has none.
	Side, SideText string
	// Tensors returns the tensors of a linear layer of n outputs and k inputs. Their names are added to the module's
	// name.
	Tensors func(n, k int) []weights.Info
}

func info(name string, d weights.DType, shape ...int) weights.Info {
	return weights.Info{Name: name, DType: d, Shape: shape}
}

func compressed(format, weightsJSON string) string {
	return `{"quant_method": "compressed-tensors", "format": "` + format + `", "ignore": ["lm_head"], "quantization_status": "compressed",
		"config_groups": {"group_0": {"targets": ["Linear"], "weights": ` + weightsJSON + `}}}`
}

// Quantisations are the layouts that package quant knows, for layers whose inputs and outputs are multiples of 128.
var Quantisations = []Quantisation{
	{Name: "compressed fp8 tensor", Format: "fp8, per tensor (compressed-tensors)",
		Config: compressed("float-quantized", `{"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": true}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", weights.BF16, 1), info("input_scale", weights.BF16, 1)}
		}},
	{Name: "compressed fp8 channel", Format: "fp8, per channel (compressed-tensors)",
		Config: compressed("float-quantized", `{"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", weights.BF16, n, 1)}
		}},
	{Name: "compressed fp8 block", Format: "fp8, blocks of 128×128 (compressed-tensors)",
		Config: compressed("float-quantized", `{"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", weights.BF16, (n+127)/128, (k+127)/128)}
		}},
	{Name: "fp8 block", Format: "fp8, blocks of 128×128 (fp8)",
		Config: `{"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale_inv", weights.F32, (n+127)/128, (k+127)/128)}
		}},
	{Name: "fbgemm", Format: "fp8, per channel (fbgemm_fp8)",
		Config: `{"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", weights.F32, n, 1)}
		}},
	{Name: "modelopt fp8", Format: "fp8, per tensor (modelopt)",
		Config: `{"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}`,
		Side:   "hf_quant_config.json", SideText: `{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": null, "exclude_modules": ["lm_head"]}}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", weights.F32), info("input_scale", weights.F32)}
		}},
	{Name: "modelopt nvfp4", Format: "nvfp4, groups of 16 (modelopt)",
		Config: `{"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": ["lm_head"]}`,
		Side:   "hf_quant_config.json", SideText: `{"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.U8, n, k/2), info("weight_scale", weights.F8E4M3, n, k/16),
				info("weight_scale_2", weights.F32), info("input_scale", weights.F32)}
		}},
	{Name: "compressed int8", Format: "int8, per channel (compressed-tensors)",
		Config: compressed("int-quantized", `{"num_bits": 8, "type": "int", "strategy": "channel"}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.I8, n, k), info("weight_scale", weights.BF16, n, 1)}
		}},
	{Name: "pack-quantized", Format: "int4, groups of 32 (compressed-tensors)",
		Config: compressed("pack-quantized", `{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": true}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight_packed", weights.I32, n, k/8), info("weight_scale", weights.BF16, n, k/32), info("weight_shape", weights.I64, 2)}
		}},
	{Name: "pack-quantized asymmetric", Format: "int4, groups of 32 (compressed-tensors)",
		Config: compressed("pack-quantized", `{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": false, "actorder": "group"}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight_packed", weights.I32, n, k/8), info("weight_scale", weights.BF16, n, k/32), info("weight_shape", weights.I64, 2),
				info("weight_zero_point", weights.I32, n/8, k/32), info("weight_g_idx", weights.I32, k)}
		}},
	{Name: "gptq", Format: "int4, groups of 64 (gptq)",
		Config: `{"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": true, "sym": true}`,
		Side:   "quantize_config.json", SideText: `{"bits": 4, "group_size": 64, "desc_act": true, "damp_percent": 0.1}`,
		Tensors: gptqTensors},
	{Name: "gptq v2", Format: "int4, groups of 64 (gptq_v2)",
		Config:  `{"quant_method": "gptq", "checkpoint_format": "gptq_v2", "bits": 4, "group_size": 64}`,
		Tensors: gptqTensors},
	{Name: "awq", Format: "int4, groups of 64 (awq)",
		Config: `{"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "zero_point": true, "modules_to_not_convert": null}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("qweight", weights.I32, k, n/8), info("qzeros", weights.I32, k/64, n/8), info("scales", weights.F16, k/64, n)}
		}},
	{Name: "compressed mxfp4", Format: "mxfp4, groups of 32 (compressed-tensors)",
		Config: compressed("mxfp4-pack-quantized", `{"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight_packed", weights.U8, n, k/2), info("weight_scale", weights.U8, n, k/32)}
		}},
	{Name: "compressed nvfp4", Format: "nvfp4, groups of 16 (compressed-tensors)",
		Config: compressed("nvfp4-pack-quantized", `{"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}`),
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight_packed", weights.U8, n, k/2), info("weight_scale", weights.F8E4M3, n, k/16),
				info("weight_global_scale", weights.F32, 1), info("input_global_scale", weights.F32, 1)}
		}},
	{Name: "bitsandbytes nf4", Format: "nf4 (bitsandbytes)",
		Config: `{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "llm_int8_skip_modules": ["lm_head"]}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.U8, n*k/2, 1), info("weight.absmax", weights.U8, n*k/64), info("weight.nested_absmax", weights.F32, 1),
				info("weight.nested_quant_map", weights.F32, 256), info("weight.quant_map", weights.F32, 16), info("weight.quant_state.bitsandbytes__nf4", weights.U8, 90)}
		}},
	{Name: "bitsandbytes int8", Format: "int8, per channel (bitsandbytes)",
		Config: `{"quant_method": "bitsandbytes", "load_in_8bit": true}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.I8, n, k), info("SCB", weights.F32, n), info("weight_format", weights.U8)}
		}},
	{Name: "unknown method, nested names", Format: "unknown format (quanto)",
		Config: `{"quant_method": "quanto", "weights": "int4"}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight._data._data", weights.U8, n, k/2), info("weight._scale", weights.BF16, n*k/64, 1), info("weight._shift", weights.BF16, n*k/64, 1)}
		}},
	{Name: "unknown method", Format: "unknown format (hqq)",
		Config: `{"quant_method": "hqq", "group_size": 64}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("W_q", weights.U8, n, k/2), info("scale", weights.BF16, n*k/64, 1), info("zero", weights.BF16, n*k/64, 1)}
		}},
}

func gptqTensors(n, k int) []weights.Info {
	return []weights.Info{info("qweight", weights.I32, k/8, n), info("qzeros", weights.I32, k/64, n/8), info("scales", weights.F16, k/64, n), info("g_idx", weights.I32, k)}
}

// QuantisedShape gives llama-tiny's layers the widths that the layouts need.
const QuantisedShape = `{"hidden_size": 128, "intermediate_size": 256, "head_dim": 32, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 64}`

// With changes the checkpoint that Quantised writes.
type With struct {
	// Config replaces quantization_config. "none" leaves out the configuration and the side file.
	Config string
	// Keep selects modules that stay unquantised, by a part of their names. The config lists them if its method has a
	// list and Unlisted is false.
	Keep     []string
	Unlisted bool
	// Head is true if lm_head is quantised too.
	Head bool
	// Change edits the tensors; may be nil.
	Change func([]weights.Info) []weights.Info
	// Fields is JSON with further fields of config.json, added after the model is made.
	Fields string
}

// Quantised writes a small Llama in a layout, and returns its folder. Two shards share the tensors, so that codes and
// scales are in different shards.
func Quantised(t testing.TB, q Quantisation, w With) string {
	t.Helper()
	var fields map[string]any
	OK(t, json.Unmarshal(Config(t, "llama-tiny", QuantisedShape), &fields))
	plain, err := json.Marshal(fields)
	OK(t, err)
	dir := Folder(t, plain, synth.Options{Seed: 2})
	m := Open(t, dir)
	data := map[string][]byte{}
	var infos []weights.Info
	var kept []string // modules that stay unquantised
	for _, i := range m.Infos() {
		module, isWeight := strings.CutSuffix(i.Name, ".weight")
		linear := isWeight && strings.HasSuffix(module, "_proj") || module == "lm_head" && w.Head
		if !linear || slices.ContainsFunc(w.Keep, func(part string) bool { return strings.Contains(module, part) }) {
			if linear {
				kept = append(kept, module)
			}
			data[i.Name] = slices.Clone(TensorOf(t, m, i.Name).Data)
			infos = append(infos, i)
			continue
		}
		layer := q.Tensors(i.Shape[0], i.Shape[1])
		for _, x := range layer {
			own := numbered(x, layer, i.Shape)
			x.Name = module + "." + x.Name
			infos = append(infos, x)
			if own != nil {
				data[x.Name] = own
			}
		}
	}
	if w.Change != nil {
		infos = w.Change(infos)
	}
	OK(t, os.Remove(m.Shards[0].Path))
	writeShards(t, dir, infos, data)
	if w.Fields != "" {
		OK(t, json.Unmarshal([]byte(w.Fields), &fields))
	}
	switch w.Config {
	case "none":
	case "":
		OK(t, json.Unmarshal([]byte(`{"quantization_config": `+q.Config+`}`), &fields))
		if !w.Unlisted {
			list(fields["quantization_config"].(map[string]any), kept)
		}
	default:
		OK(t, json.Unmarshal([]byte(`{"quantization_config": `+w.Config+`}`), &fields))
	}
	js, err := json.Marshal(fields)
	OK(t, err)
	OK(t, os.WriteFile(filepath.Join(dir, weights.ConfigName), js, 0o666))
	if q.Side != "" && w.Config == "" {
		OK(t, os.WriteFile(filepath.Join(dir, q.Side), []byte(q.SideText), 0o666))
	}
	return dir
}

// ListField returns the field of a quantization_config that lists unquantised modules; empty if its method has none.
func ListField(config map[string]any) string {
	switch config["quant_method"] {
	case "compressed-tensors", "modelopt":
		return "ignore"
	case "fp8", "fbgemm_fp8", "awq":
		return "modules_to_not_convert"
	case "bitsandbytes":
		return "llm_int8_skip_modules"
	}
	return ""
}

// list adds modules to a config's list of unquantised modules.
func list(config map[string]any, modules []string) {
	field := ListField(config)
	if field == "" || len(modules) == 0 {
		return
	}
	all, _ := config[field].([]any)
	for _, m := range modules {
		all = append(all, m)
	}
	config[field] = all
}

// writeShards distributes tensors over two shards in turn. Tensors without data get numbers that rounding would
// change.
func writeShards(t testing.TB, dir string, infos []weights.Info, data map[string][]byte) {
	t.Helper()
	names := []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
	random := rand.New(rand.NewPCG(1, 2))
	index := map[string]string{}
	for shard, name := range names {
		var own []weights.Info
		for i, x := range infos {
			if i%len(names) == shard {
				own, index[x.Name] = append(own, weights.Info{Name: x.Name, DType: x.DType, Shape: x.Shape}), name
			}
		}
		file, placed, err := weights.EncodeHeader(own, nil)
		OK(t, err)
		for _, x := range placed {
			if int64(len(data[x.Name])) != x.Size() {
				data[x.Name] = number(x, random)
			}
			file = append(file, data[x.Name]...)
		}
		OK(t, os.WriteFile(filepath.Join(dir, name), file, 0o666))
	}
	OK(t, os.WriteFile(filepath.Join(dir, weights.IndexName), weights.EncodeIndex(index, 0), 0o666))
}

// QuantisedLayer writes a folder with one layer, "m.up_proj", in a layout. It returns the folder.
func QuantisedLayer(t testing.TB, q Quantisation, n, k int) string {
	t.Helper()
	dir, data := t.TempDir(), map[string][]byte{}
	layer := q.Tensors(n, k)
	var infos []weights.Info
	for _, x := range layer {
		own := numbered(x, layer, []int{n, k})
		x.Name = "m.up_proj." + x.Name
		infos, data[x.Name] = append(infos, x), own
	}
	writeShards(t, dir, infos, data)
	OK(t, os.WriteFile(filepath.Join(dir, weights.ConfigName), []byte(`{"quantization_config": `+q.Config+`}`), 0o666))
	return dir
}

// numbered returns the data of a tensor whose numbers depend on the other tensors of its layer; nil for other
// tensors. Groups have equally many inputs, which are not contiguous.
func numbered(x weights.Info, layer []weights.Info, shape []int) (b []byte) {
	switch {
	case x.Name == "weight_shape":
		for _, d := range shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
	case strings.HasSuffix(x.Name, "g_idx"):
		groups := 0
		for _, y := range layer {
			switch y.Name {
			case "scales":
				groups = y.Shape[0]
			case "weight_scale":
				groups = y.Shape[1]
			}
		}
		for k := range shape[1] {
			b = binary.LittleEndian.AppendUint32(b, uint32(k*5%groups))
		}
	}
	return b
}

// number fills a tensor: floats near 0.01 with all mantissa bits in use, and codes with random bits, except NaN.
func number(x weights.Info, random *rand.Rand) []byte {
	b := make([]byte, x.Size())
	f, known := x.DType.Format()
	for i := range x.Len() {
		switch v := float32(0.01 + 0.001*random.Float64()); {
		case strings.HasSuffix(x.Name, "qzeros"): // GPTQ adds 1, and the sum must be a code
			binary.LittleEndian.PutUint32(b[4*i:], random.Uint32()&0x77777777)
		case strings.HasSuffix(x.Name, "_scale") && x.DType.Bits() == 8: // positive powers of two, and E4M3
			b[i] = byte(110 + random.Uint32N(16))
		case x.DType == weights.I64:
			binary.LittleEndian.PutUint64(b[8*i:], uint64(128*(i+1)))
		case x.DType == weights.I32:
			binary.LittleEndian.PutUint32(b[4*i:], random.Uint32())
		case known && x.DType.Bits() > 8:
			f.SetElem(b, i, f.FromValue(v))
		default:
			b[i] = byte(random.Uint32N(256))
			if known && !f.Finite(uint32(b[i])) {
				b[i] = byte(math.MaxInt8 / 2)
			}
		}
	}
	return b
}
