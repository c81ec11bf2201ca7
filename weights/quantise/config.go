package quantise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// field is config.json's field with the description of the quantisation.
const field = "quantization_config"

// Config returns config, a config.json, with the format's quantization_config added at its end. ignore lists the modules that
// are not quantised. A config that describes a quantisation already is an error.
func (f Format) Config(config []byte, ignore []string) ([]byte, error) {
	fields, err := objectOf(config)
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	for _, name := range []string{field, "compression_config"} {
		i := slices.IndexFunc(fields, func(m member) bool { return m.name == name })
		if i >= 0 && string(fields[i].value) != "null" {
			return nil, fmt.Errorf("config.json: has a field %s: the model is quantised already: give the unquantised model", name)
		}
		if i >= 0 {
			fields = slices.Delete(fields, i, i+1)
		}
	}
	value, err := json.MarshalIndent(f.layout.config(f, ignore), "  ", "  ")
	if err != nil {
		return nil, err
	}
	fields = append(fields, member{field, value})
	var b bytes.Buffer
	for i, m := range fields {
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		before := ","
		if i == 0 {
			before = "{"
		}
		fmt.Fprintf(&b, "%s\n  %s: %s", before, name, m.value)
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// File is a file beside config.json.
type File struct {
	Name string
	Text []byte
}

// Files returns the files beside config.json that describe the quantisation.
func (f Format) Files(ignore []string) ([]File, error) {
	if f.layout.beside == "" {
		return nil, nil
	}
	text, err := json.MarshalIndent(f.layout.besideText(f, ignore), "", "  ")
	return []File{{f.layout.beside, append(text, '\n')}}, err
}

// member is a field of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// objectOf reads the fields of a JSON object in their order.
func objectOf(js []byte) (fields []member, err error) {
	d := json.NewDecoder(bytes.NewReader(js))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(err, errors.New("is not a JSON object"))
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: t.(string)} // the decoder allows only strings here
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		fields = append(fields, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("text follows the JSON object")
	}
	return fields, nil
}

type object = map[string]any

// quantized returns compressed-tensors' description of a tensor's values.
func quantized(bits int, kind, strategy string) object {
	return object{"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": true, "dynamic": false, "group_size": nil,
		"block_structure": nil, "actorder": nil, "observer": "minmax", "observer_kwargs": object{}}
}

// onTheFly returns compressed-tensors' description of activations that are quantised dynamically.
func onTheFly(bits int, kind, strategy string) object {
	o := quantized(bits, kind, strategy)
	o["dynamic"], o["observer"] = true, nil
	return o
}

// compressed returns a function that makes the config of compressed-tensors for FP8 and integers.
func compressed(format string) func(Format, []string) object {
	return func(f Format, ignore []string) object {
		bits, kind := 8, "int"
		switch f.Codes {
		case "fp8":
			kind = "float"
		case "int4":
			bits = 4
		}
		values := quantized(bits, kind, f.Per)
		values["symmetric"] = !f.Zeros
		var inputs any
		switch {
		case bits < 8: // activations are not quantised
			values["group_size"] = f.Block[1]
		case f.Per == "block":
			values["block_structure"] = f.Block[:]
			group := onTheFly(bits, kind, "group")
			group["group_size"] = f.Block[1]
			inputs = group
		case f.Per == "tensor":
			inputs = quantized(bits, kind, "tensor")
		default:
			inputs = onTheFly(bits, kind, "token")
		}
		return compressedConfig(format, values, inputs, ignore)
	}
}

func compressedFour(f Format, ignore []string) object {
	format, strategy := "nvfp4-pack-quantized", "tensor_group"
	if f.Codes == "mxfp4" {
		format, strategy = "mxfp4-pack-quantized", "group"
	}
	values := quantized(4, "float", strategy)
	values["group_size"] = f.Block[1]
	return compressedConfig(format, values, nil, ignore)
}

func compressedConfig(format string, values object, inputs any, ignore []string) object {
	return object{"quant_method": "compressed-tensors", "format": format, "quantization_status": "compressed", "global_compression_ratio": nil,
		"kv_cache_scheme": nil, "ignore": list(ignore), "config_groups": object{"group_0": object{"targets": []string{"Linear"}, "weights": values,
			"input_activations": inputs, "output_activations": nil}}}
}

// list returns a copy of names that is never nil, so that JSON has an empty array instead of null.
func list(names []string) []string { return append([]string{}, names...) }

func deepSeekConfig(f Format, ignore []string) object {
	return object{"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": f.Block[:], "modules_to_not_convert": list(ignore)}
}

func fbgemmConfig(_ Format, ignore []string) object {
	return object{"quant_method": "fbgemm_fp8", "activation_scale_ub": json.Number("1200.0"), "modules_to_not_convert": list(ignore)}
}

// producer is the tool that a config of ModelOpt names.
var producer = object{"name": "lowtoggle"}

func modelOptAlgorithm(f Format) string {
	if f.Codes == "nvfp4" {
		return "NVFP4"
	}
	return "FP8"
}

func modelOptConfig(f Format, ignore []string) object {
	values, inputs := object{"num_bits": 8, "type": "float", "dynamic": false}, object{"num_bits": 8, "type": "float", "dynamic": false}
	if f.Codes == "nvfp4" {
		for _, o := range []object{values, inputs} {
			o["num_bits"], o["group_size"] = 4, f.Block[1]
		}
	}
	return object{"quant_method": "modelopt", "quant_algo": modelOptAlgorithm(f), "ignore": list(ignore), "producer": producer,
		"config_groups": object{"group_0": object{"targets": []string{"Linear"}, "weights": values, "input_activations": inputs}}}
}

func modelOptText(f Format, ignore []string) object {
	q := object{"quant_algo": modelOptAlgorithm(f), "kv_cache_quant_algo": nil, "exclude_modules": list(ignore)}
	if f.Codes == "nvfp4" {
		q["group_size"] = f.Block[1]
	}
	return object{"producer": producer, "quantization": q}
}

func gptqConfig(version string) func(Format, []string) object {
	text := gptqText(version)
	return func(f Format, ignore []string) object {
		o := text(f, ignore)
		o["quant_method"] = "gptq"
		return o
	}
}

// gptqText returns a function that makes quantize_config.json. GPTQ's config has no list of quantised modules: GPTQ quantises
// all linear layers within blocks, except those that match a pattern with "-:".
func gptqText(version string) func(Format, []string) object {
	return func(f Format, ignore []string) object {
		o := object{"bits": 4, "group_size": f.Block[1], "desc_act": f.Ordered, "sym": !f.Zeros, "lm_head": false, "checkpoint_format": version,
			"pack_dtype": "int32", "true_sequential": true, "damp_percent": json.Number("0.1")}
		if slices.ContainsFunc(ignore, arch.IsRouter) {
			o["dynamic"] = object{`-:.*\.gate$`: object{}}
		}
		return o
	}
}

func awqConfig(f Format, ignore []string) object {
	return object{"quant_method": "awq", "bits": 4, "group_size": f.Block[1], "version": "gemm", "zero_point": true, "modules_to_not_convert": list(ignore)}
}
