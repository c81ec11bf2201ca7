package quant_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestChangedLayers: testdata/changes.txt has the result or the error of Describe for a layer of every layout after one
// change of its tensors or its config. Names of files and fields are shortened. A change without a line does not change the
// result.
func TestChangedLayers(t *testing.T) {
	var b bytes.Buffer
	for _, q := range append(slices.Clone(testmodel.Quantisations), experts8, blocks4, threeBits) {
		layer := q.Tensors(128, 256)
		for _, config := range []string{q.Config, ""} {
			usual := outcome(t, layer, config)
			with := "its config"
			if config == "" {
				with = "no config"
			}
			fmt.Fprintf(&b, "\n# %s, with %s: %s\n", q.Name, with, usual)
			put := func(change string, layer []weights.Info, config string) {
				if got := outcome(t, layer, config); got != usual {
					fmt.Fprintf(&b, "%s: %s\n", change, got)
				}
			}
			changeTensors(layer, func(change string, changed []weights.Info) { put(change, changed, config) })
			if config != "" {
				changeFields(t, config, func(change, changed string) { put(change, layer, changed) })
			}
		}
	}
	goldenfile.Same(t, "testdata/changes.txt", bytes.TrimPrefix(b.Bytes(), []byte("\n")))
}

func info(name string, d weights.DType, shape ...int) weights.Info {
	return weights.Info{Name: name, DType: d, Shape: shape}
}

// Layouts beside those of testmodel: experts in one tensor, MXFP4 in blocks, and codes that lie across words.
var (
	experts8 = testmodel.Quantisation{Name: "fp8 experts", Config: `{"quant_method": "fp8", "weight_block_size": [32, 64]}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("weight", weights.F8E4M3, 3, n, k), info("weight_scale_inv", weights.F32, 3, n/32, k/64)}
		}}
	blocks4 = testmodel.Quantisation{Name: "mxfp4 blocks", Config: `{"quant_method": "mxfp4"}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("w_blocks", weights.U8, 3, n, k/32, 16), info("w_scales", weights.U8, 3, n, k/32)}
		}}
	threeBits = testmodel.Quantisation{Name: "gptq of 3 bits", Config: `{"quant_method": "gptq", "bits": 3, "group_size": -1}`,
		Tensors: func(n, k int) []weights.Info {
			return []weights.Info{info("qweight", weights.I32, k/32*3, n), info("qzeros", weights.I32, 1, n/32*3), info("scales", weights.F16, 1, n)}
		}}
)

// outcome returns the result of Describe for a layer of 128×256 values, as text.
func outcome(t *testing.T, layer []weights.Info, config string) string {
	t.Helper()
	var infos []weights.Info
	for _, x := range layer {
		x.Name = "m." + x.Name
		infos = append(infos, x)
	}
	infos = append(infos, info("m.norm.weight", weights.BF16, 256))
	f, err := weights.Arrange("model.safetensors", infos, nil, func(x weights.Info) []byte {
		if x.Name != "m.weight_shape" {
			return nil
		}
		var b []byte
		for i := range x.Len() {
			v := []uint64{128, 256}[i%2]
			if x.DType.Bits() == 64 {
				b = binary.LittleEndian.AppendUint64(b, v)
			} else {
				b = append(b, make([]byte, x.DType.Bits()/8)...)
				b[len(b)-x.DType.Bits()/8] = byte(v)
			}
		}
		return b
	})
	testmodel.OK(t, err)
	m := &weights.Model{Shards: []*weights.File{f}}
	if config != "" {
		m.Config = []byte(`{"quantization_config": ` + config + `}`)
	}
	d, err := quant.Describe(m)
	if err != nil {
		return strings.NewReplacer("model.safetensors: ", "", ": config.json: ", "", "config.json: quantization_config.", "config's ", "config_groups.group_0.weights.", "weights' ",
			"holds the codes of a quantised weight", "holds codes", "\ndownload the model again, or correct quantization_config in config.json", "", "\ndownload the model again", "", "\n", " | ").Replace(err.Error())
	}
	var b strings.Builder
	for _, w := range d.Weights {
		fmt.Fprintf(&b, "%s is %s", w.Name, w.Format)
		if w.Shape != nil {
			fmt.Fprintf(&b, " %v", w.Shape)
		}
		if w.Padding > 0 {
			fmt.Fprintf(&b, ", padding %d", w.Padding)
		}
		for _, x := range w.Tensors {
			fmt.Fprintf(&b, ", %s %s", x.Role, strings.TrimPrefix(x.Name, "m."))
		}
		if err := w.CanRead(); err != nil {
			fmt.Fprintf(&b, "; not read: %v", err)
		}
		b.WriteString("; ")
	}
	for _, x := range d.Others {
		fmt.Fprintf(&b, "%s %s; ", x.Role, x.Name)
	}
	if d.Unknown != "" {
		b.WriteString("unknown: " + d.Unknown)
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// changeTensors makes every layer that differs in one tensor: a missing one, another type, other dimensions.
func changeTensors(layer []weights.Info, do func(change string, changed []weights.Info)) {
	for i, x := range layer {
		do("without "+x.Name, slices.Delete(slices.Clone(layer), i, i+1))
		with := func(d weights.DType, shape []int) {
			changed := slices.Clone(layer)
			changed[i].DType, changed[i].Shape = d, shape
			do(fmt.Sprintf("%s %s%v", x.Name, d, shape), changed)
		}
		for _, d := range []weights.DType{weights.F32, weights.I32, weights.U8, weights.F8E4M3, weights.F8E8M0} {
			if d != x.DType {
				with(d, x.Shape)
			}
		}
		for axis, n := range x.Shape {
			for _, other := range []int{0, n - 1, n + 1, n * 2, n / 2} {
				if other != n && (other != 0 || axis == 0) {
					shape := slices.Clone(x.Shape)
					shape[axis] = other
					with(x.DType, shape)
				}
			}
		}
		with(x.DType, []int{1, 1})
		with(x.DType, slices.Concat(x.Shape, []int{1}))
		with(x.DType, slices.Concat([]int{3}, x.Shape))
		if len(x.Shape) > 1 {
			with(x.DType, x.Shape[1:])
			reversed := slices.Clone(x.Shape)
			slices.Reverse(reversed)
			with(x.DType, reversed)
		}
	}
}

// changeFields makes every config that differs in one field: a missing one, other numbers, other texts.
func changeFields(t *testing.T, config string, do func(change, changed string)) {
	var top map[string]any
	testmodel.OK(t, json.Unmarshal([]byte(config), &top))
	var visit func(path string, v any, set func(any))
	visit = func(path string, v any, set func(any)) {
		try := func(values ...any) {
			for _, other := range values {
				set(other)
				js, err := json.Marshal(top)
				testmodel.OK(t, err)
				text, err := json.Marshal(other)
				testmodel.OK(t, err)
				do(strings.Replace(path, "config_groups.group_0.weights.", "weights' ", 1)+" "+string(text), string(js))
			}
			set(v)
		}
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(strings.TrimPrefix(path+"."+name, "."), v[name], func(x any) {
					if v[name] = x; x == nil {
						delete(v, name)
					}
				})
			}
			if path != "" {
				try(nil, []any{})
			}
		case []any:
			for i := range v {
				visit(path+"."+strconv.Itoa(i), v[i], func(x any) { v[i] = x })
			}
			try(nil, 1, []any{}, []any{"re:m", "re:("}, []any{"m"}, []any{1})
		case float64:
			n := int64(v)
			try(nil, "4", -2, -1, 0, 1, 3, n-1, n+1, 2*n, 32, 33, 1<<31-1, int64(1)<<31)
		case string:
			try(nil, 1, "other", "tensor", "channel", "block", "float", "int")
		case bool:
			try(nil, 1, !v)
		}
	}
	visit("", top, nil)
}

// TestUnlistedModules: an unquantised matrix whose module is quantised in other layers belongs to the quantisation, unless an
// entry of the config's list matches the module in some runtime.
func TestUnlistedModules(t *testing.T) {
	for entry, listed := range map[string]bool{
		"lm_head": false, "model.layers.1.mlp.up": true, "layers.1": true, "layers.0": false, "mlp": true, "model.*.up": true, "model.*.down": false, "*1*up*": true,
		"up*model": false, "re:.*1.*up": true, "re:.*0.*up": false, "re:(": true, "re:up": true, "*": true, ".up.": true, "layers*0": false,
	} {
		infos := []weights.Info{info("model.layers.0.mlp.up.weight", weights.F8E4M3, 128, 128), info("model.layers.0.mlp.up.weight_scale_inv", weights.F32, 1, 1),
			info("model.layers.1.mlp.up.weight", weights.BF16, 128, 128), info("model.norm.weight", weights.BF16, 128)}
		config := fmt.Sprintf(`{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": [%q]}}`, entry)
		d, err := quant.Describe(&weights.Model{Config: []byte(config), Shards: []*weights.File{{Path: "model.safetensors", Tensors: infos}}})
		testmodel.OK(t, err)
		if d.Holds("model.layers.1.mlp.up.weight") == listed || d.Holds("model.norm.weight") {
			t.Errorf("%q: the unquantised matrix belongs to the quantisation: %v", entry, !listed)
		}
	}
}
