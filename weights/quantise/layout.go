package quantise

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights"
)

// layout has the names, shapes and configs that the formats of one method share.
type layout struct {
	// outWords is the number of outputs that share a 32-bit word; 0: outputs do not share words.
	outWords int
	// tensors returns the tensors of a linear layer, the codes first. Names follow the module's name; float is the model's type.
	tensors func(f Format, n, k int, float weights.DType) []weights.Info
	// config returns the quantization_config; ignore lists the modules that are not quantised.
	config func(f Format, ignore []string) map[string]any
	// beside is the name of a second file with the same description; empty if no tool writes one.
	beside     string
	besideText func(f Format, ignore []string) map[string]any
}

// Tensors returns the tensors of a linear layer's weight, the codes first. name is the weight's name; the weight has n
// outputs and k inputs. Scales have the type float, the model's type, unless the layout prescribes another type. Tensors
// returns an error if the layout cannot hold a matrix of this shape.
func (f Format) Tensors(name string, n, k int, float weights.DType) ([]weights.Info, error) {
	module, err := moduleOf(name)
	if err != nil {
		return nil, err
	}
	if f.Per == "group" && k%f.Block[1] != 0 {
		return nil, fmt.Errorf("%s has %d inputs, which is not a multiple of the group size %d (format %s)", name, k, f.Block[1], f.Name)
	}
	if w := f.layout.outWords; w > 0 && n%w != 0 {
		return nil, fmt.Errorf("%s has %d outputs, which is not a multiple of the %d outputs that format %s packs into a word", name, n, w, f.Name)
	}
	infos := f.layout.tensors(f, n, k, float)
	for i := range infos {
		infos[i].Name = module + infos[i].Name
	}
	return infos, nil
}

func info(name string, d weights.DType, shape ...int) weights.Info {
	return weights.Info{Name: name, DType: d, Shape: shape}
}

var floatCompressed = &layout{config: compressed("float-quantized"), tensors: func(f Format, n, k int, float weights.DType) []weights.Info {
	if f.Per == "tensor" {
		return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", float, 1), info("input_scale", float, 1)}
	}
	rows, cols := f.Blocks(n, k)
	return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", float, rows, cols)}
}}

var intCompressed = &layout{config: compressed("int-quantized"), tensors: func(_ Format, n, k int, float weights.DType) []weights.Info {
	return []weights.Info{info("weight", weights.I8, n, k), info("weight_scale", float, n, 1)}
}}

var packed = &layout{config: compressed("pack-quantized"), tensors: func(f Format, n, k int, float weights.DType) []weights.Info {
	rows, groups := f.Blocks(n, k)
	infos := []weights.Info{info("weight_packed", weights.I32, n, k/8), info("weight_scale", float, rows, groups), info("weight_shape", weights.I64, 2)}
	if f.Zeros {
		infos = append(infos, info("weight_zero_point", weights.I32, ceil(n, 8), groups))
	}
	return infos
}}

var fourCompressed = &layout{config: compressedFour, tensors: func(f Format, n, k int, _ weights.DType) []weights.Info {
	codes := info("weight_packed", weights.U8, n, k/2)
	if f.Codes == "mxfp4" {
		return []weights.Info{codes, info("weight_scale", weights.U8, n, k/f.Block[1])}
	}
	return []weights.Info{codes, info("weight_scale", weights.F8E4M3, n, k/f.Block[1]), info("weight_global_scale", weights.F32, 1)}
}}

var deepSeek = &layout{config: deepSeekConfig, tensors: func(f Format, n, k int, _ weights.DType) []weights.Info {
	rows, cols := f.Blocks(n, k)
	return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale_inv", weights.F32, rows, cols)}
}}

var fbgemm = &layout{config: fbgemmConfig, tensors: func(_ Format, n, k int, _ weights.DType) []weights.Info {
	return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", weights.F32, n, 1)}
}}

var modelOptFP8 = &layout{config: modelOptConfig, beside: "hf_quant_config.json", besideText: modelOptText,
	tensors: func(_ Format, n, k int, _ weights.DType) []weights.Info {
		return []weights.Info{info("weight", weights.F8E4M3, n, k), info("weight_scale", weights.F32), info("input_scale", weights.F32)}
	}}

var modelOptFour = &layout{config: modelOptConfig, beside: "hf_quant_config.json", besideText: modelOptText,
	tensors: func(f Format, n, k int, _ weights.DType) []weights.Info {
		return []weights.Info{info("weight", weights.U8, n, k/2), info("weight_scale", weights.F8E4M3, n, k/f.Block[1]),
			info("weight_scale_2", weights.F32), info("input_scale", weights.F32)}
	}}

var gptq = &layout{outWords: 8, config: gptqConfig("gptq"), beside: "quantize_config.json", besideText: gptqText("gptq"), tensors: gptqTensors}

var gptq2 = &layout{outWords: 8, config: gptqConfig("gptq_v2"), beside: "quantize_config.json", besideText: gptqText("gptq_v2"), tensors: gptqTensors}

func gptqTensors(f Format, n, k int, _ weights.DType) []weights.Info {
	groups := k / f.Block[1]
	return []weights.Info{info("qweight", weights.I32, k/8, n), info("qzeros", weights.I32, groups, n/8), info("scales", weights.F16, groups, n),
		info("g_idx", weights.I32, k)}
}

var awq = &layout{outWords: 8, config: awqConfig, tensors: func(f Format, n, k int, _ weights.DType) []weights.Info {
	groups := k / f.Block[1]
	return []weights.Info{info("qweight", weights.I32, k, n/8), info("qzeros", weights.I32, groups, n/8), info("scales", weights.F16, groups, n)}
}}
