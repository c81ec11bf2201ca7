package quant_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// valid returns a layer of 8 outputs and 64 inputs in a layout, whose values can all be read.
func valid(layout string) (config string, tensors []stored) {
	bf16, f16 := []byte{0x80, 0x3F}, []byte{0, 0x3C} // 1
	one := []byte{0, 0, 0x80, 0x3F}
	index := make([]byte, 4*64)
	for k := range 64 {
		index[4*k] = byte(k % 2)
	}
	compressed := func(format, args string) string {
		return `{"quant_method": "compressed-tensors", "format": "` + format + `", "config_groups": {"g": {"targets": ["Linear"], "weights": {` + args + `}}}}`
	}
	sizes := append(binary.LittleEndian.AppendUint64(nil, 8), binary.LittleEndian.AppendUint64(nil, 64)...)
	switch layout {
	case "fp8":
		return compressed("float-quantized", `"num_bits": 8, "type": "float", "strategy": "channel"`), []stored{
			{"weight", weights.F8E4M3, []int{8, 64}, make([]byte, 512)}, {"weight_scale", weights.BF16, []int{8, 1}, bytes.Repeat(bf16, 8)}}
	case "ue8m0":
		return `{"quant_method": "fp8", "weight_block_size": [4, 32]}`, []stored{
			{"weight", weights.F8E4M3, []int{8, 64}, make([]byte, 512)}, {"weight_scale_inv", weights.F8E8M0, []int{2, 2}, []byte{127, 127, 127, 127}}}
	case "packed":
		return compressed("pack-quantized", `"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32`), []stored{
			{"weight_packed", weights.I32, []int{8, 8}, make([]byte, 256)}, {"weight_scale", weights.F16, []int{8, 2}, bytes.Repeat(f16, 16)},
			{"weight_shape", weights.I64, []int{2}, sizes}, {"weight_zero_point", weights.I32, []int{1, 2}, make([]byte, 8)}, {"weight_g_idx", weights.I32, []int{64}, index}}
	case "int4 in bytes":
		return compressed("pack-quantized", `"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32`), []stored{
			{"weight_packed", weights.I32, []int{8, 8}, make([]byte, 256)}, {"weight_scale", weights.F32, []int{8, 2}, bytes.Repeat(one, 16)},
			{"weight_zero_point", weights.I8, []int{8, 2}, make([]byte, 16)}}
	case "gptq":
		return `{"quant_method": "gptq", "bits": 4, "group_size": 32}`, []stored{
			{"qweight", weights.I32, []int{8, 8}, make([]byte, 256)}, {"scales", weights.F16, []int{2, 8}, bytes.Repeat(f16, 16)},
			{"qzeros", weights.I32, []int{2, 1}, bytes.Repeat([]byte{0x77}, 8)}, {"g_idx", weights.I32, []int{64}, index}}
	}
	return compressed("nvfp4-pack-quantized", `"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16`), []stored{
		{"weight_packed", weights.U8, []int{8, 32}, make([]byte, 256)}, {"weight_scale", weights.F8E4M3, []int{8, 4}, bytes.Repeat([]byte{0x38}, 32)},
		{"weight_global_scale", weights.F32, []int{1}, one}}
}

// TestValuesThatCannotBe: for an impossible value, Check and Read return the same error, which names file, tensor and byte.
func TestValuesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		layout, tensor string
		at             int
		bytes          []byte
		want           string // empty: the values can be read
	}{
		{"fp8", "weight_scale", 6, []byte{0, 0}, "holds the scale 0, which is not a positive number"},
		{"fp8", "weight_scale", 6, []byte{0x80, 0xBF}, "holds the scale -1,"},
		{"fp8", "weight_scale", 14, []byte{0xC0, 0x7F}, "holds the scale NaN,"},
		{"fp8", "weight_scale", 14, []byte{0x80, 0x7F}, "holds the scale +Inf,"},
		{"fp8", "weight", 100, []byte{0x7F}, ""}, // a value that is NaN
		{"ue8m0", "weight_scale_inv", 3, []byte{255}, "holds the scale NaN,"},
		{"ue8m0", "weight_scale_inv", 3, []byte{0}, ""},
		{"nvfp4", "weight_scale", 31, []byte{0x7F}, "holds the scale NaN,"},
		{"nvfp4", "weight_scale", 30, []byte{0xB8}, "holds the scale -1,"},
		{"nvfp4", "weight_scale", 30, []byte{0x80}, "holds the scale -0,"},
		{"nvfp4", "weight_scale", 30, []byte{0}, ""},
		{"nvfp4", "weight_global_scale", 0, []byte{0, 0, 0, 0}, "holds the global scale 0,"},
		{"nvfp4", "weight_global_scale", 0, []byte{0, 0, 0xC0, 0xFF}, "holds the global scale NaN,"},
		{"packed", "weight_scale", 4, []byte{0, 0x80}, "holds the scale -0,"},
		{"packed", "weight_shape", 8, []byte{65}, "says that dimension 1 is 65, but codes \"m.weight_packed\" hold 64"},
		{"packed", "weight_shape", 0, []byte{9}, "says that dimension 0 is 9,"},
		{"packed", "weight_g_idx", 40, []byte{2}, "puts input 10 into group 2, but the groups are 0 to 1"},
		{"packed", "weight_g_idx", 40, []byte{255, 255, 255, 255}, "puts input 10 into group -1,"},
		{"packed", "weight_g_idx", 248, []byte{1}, "puts more than 32 inputs into group 1"},
		{"packed", "weight_zero_point", 0, []byte{255, 255}, ""},
		{"int4 in bytes", "weight_zero_point", 5, []byte{7}, ""},
		{"int4 in bytes", "weight_zero_point", 5, []byte{0xF8}, ""},
		{"int4 in bytes", "weight_zero_point", 5, []byte{8}, "holds the zero point 8, but codes of 4 bits are -8 to 7"},
		{"int4 in bytes", "weight_zero_point", 5, []byte{0xF7}, "holds the zero point -9,"},
		{"gptq", "scales", 18, []byte{0, 0}, "holds the scale 0,"},
		{"gptq", "scales", 18, []byte{0, 0x7C}, "holds the scale +Inf,"},
		{"gptq", "qzeros", 4, []byte{0xF7}, "holds the zero point 15 of output 1, but GPTQ adds 1, and 16 is no code of 4 bits: download the model again"},
		{"gptq", "g_idx", 4, []byte{2}, "puts input 1 into group 2,"},
		{"gptq", "g_idx", 4, []byte{0}, ""}, // groups of GPTQ may have any size
	} {
		name := fmt.Sprintf("%s: %s at %d: %v", c.layout, c.tensor, c.at, c.bytes)
		config, tensors := valid(c.layout)
		i := slices.IndexFunc(tensors, func(x stored) bool { return x.name == c.tensor })
		copy(tensors[i].data[c.at:], c.bytes)
		m := checkpoint(t, config, tensors...)
		d, err := quant.Describe(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w := d.Weights[0]
		_, err = w.Read(0)
		if checked := w.Check(); fmt.Sprint(checked) != fmt.Sprint(err) {
			t.Errorf("%s: Check gives %v, and Read %v", name, checked, err)
		}
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		at := int64(len(m.Shards[i].Head()))
		if strings.HasPrefix(c.want, "puts more") {
			at += 4 * 63 // the last of 33 inputs
		} else {
			at += int64(c.at)
		}
		file := fmt.Sprintf("%c.safetensors: tensor \"m.%s\": byte %d: ", 'a'+i, c.tensor, at)
		if err == nil || !strings.Contains(err.Error(), file+c.want) {
			t.Errorf("%s: %v, want %s%s", name, err, file, c.want)
		}
	}
}

// TestMatricesThatCannotBeStored: Encode refuses what the layout cannot hold, before it stores anything.
func TestMatricesThatCannotBeStored(t *testing.T) {
	for _, c := range []struct {
		layout string
		change func(m *quant.Matrix)
		want   string
	}{
		{"packed", func(m *quant.Matrix) { m.Codes[5] = 16 }, "code 16 does not exist in int4"},
		{"packed", func(m *quant.Matrix) { m.Codes = m.Codes[1:] }, "with 511 codes does not fit a weight of 8 × 64"},
		{"packed", func(m *quant.Matrix) { m.Scales[3] = 1.0001 }, "the scale 1.0001 is not a value of type F16"},
		{"packed", func(m *quant.Matrix) { m.Scales = m.Scales[2:] }, "14 scales for blocks of [1 32] do not fit the weight's 16 scales"},
		{"packed", func(m *quant.Matrix) { m.Block[1] = 16 }, "do not fit"},
		{"packed", func(m *quant.Matrix) { m.Zeros[3] = 16 }, "the zero point 16 is outside 0 to 15"},
		{"packed", func(m *quant.Matrix) { m.Zeros = nil }, "0 zero points do not fit 16 scales"},
		{"packed", func(m *quant.Matrix) { m.Group[3] = 2 }, "there is no group 2"},
		{"packed", func(m *quant.Matrix) { m.Group = m.Group[3:] }, "a group index of 61 inputs does not fit"},
		{"packed", func(m *quant.Matrix) { m.Book.Codes = "int8" }, "codes int8 with scales of type F16 do not fit the weight's codes int4"},
		{"gptq", func(m *quant.Matrix) { m.Zeros[3] = 0 }, "the zero point 0 is outside 1 to 15"},
		{"nvfp4", func(m *quant.Matrix) { m.Scales[1] = 17 }, "the scale 17 is not a value of type F8_E4M3"},
		{"nvfp4", func(m *quant.Matrix) { m.Scales[1] = 480 }, "the scale 480 is not a value of type F8_E4M3"},
		{"ue8m0", func(m *quant.Matrix) { m.Scales[1] = 3 }, "the scale 3 is not a value of type F8_E8M0"},
		{"fp8", func(m *quant.Matrix) { m.Scales[1] = float32(math.Inf(1)) }, ""}, // only Read checks scales
	} {
		config, tensors := valid(c.layout)
		d, err := quant.Describe(checkpoint(t, config, tensors...))
		testmodel.OK(t, err)
		w := d.Weights[0]
		m, err := w.Read(0)
		testmodel.OK(t, err)
		if err := w.Encode(m, 1, nil); err == nil || !strings.Contains(err.Error(), "has no expert 1") {
			t.Errorf("%s: expert 1: %v", c.layout, err)
		}
		changed := m.Clone()
		c.change(changed)
		err = w.Encode(changed, 0, func(int, int64, []byte) error { return nil })
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.layout, err, c.want)
		}
		testmodel.OK(t, w.Encode(m, 0, func(int, int64, []byte) error { return nil })) // Clone shares nothing
	}
}

// TestRoundScale: RoundScale returns the nearest value that Encode can store.
func TestRoundScale(t *testing.T) {
	for _, d := range []weights.DType{weights.BF16, weights.F16, weights.F32, weights.F8E4M3, weights.F8E8M0} {
		b := quant.Book{ScaleType: d}
		var all []float32 // positive values of small types
		f, _ := d.Format()
		switch {
		case d == weights.F8E8M0:
			for e := range 255 {
				all = append(all, float32(math.Ldexp(1, e-127)))
			}
		case d != weights.F32:
			for c := uint32(1); c <= f.MaxFinite; c++ {
				all = append(all, f.Value(c))
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			s := float32(math.Ldexp(1+r.Float64(), r.IntN(80)-40))
			got := b.RoundScale(s)
			if d == weights.F32 {
				if got != s {
					t.Errorf("%s: %v becomes %v", d, s, got)
				}
				continue
			}
			i, _ := slices.BinarySearch(all, s)
			best := math.Inf(1)
			for _, v := range all[max(0, i-1):min(len(all), i+1)] {
				best = min(best, math.Abs(float64(v)-float64(s)))
			}
			if _, is := slices.BinarySearch(all, got); !is || math.Abs(float64(got)-float64(s)) != best {
				t.Errorf("%s: %v becomes %v, which is %v away, and not %v", d, s, got, math.Abs(float64(got)-float64(s)), best)
			}
		}
	}
}

// TestCodesOfOneByte: the values of all FP8 codes, by the formats of package weights where it has them.
func TestCodesOfOneByte(t *testing.T) {
	const (
		nan  = -1 // stands for NaN
		none = -2
	)
	for _, c := range []struct {
		dtype                  weights.DType
		least, most, at80, inf float64 // of codes 0x01, 0x7F, 0x80 and 0x7C
	}{
		{weights.F8E4M3, 0x1p-9, nan, 0, none},
		{weights.F8E5M2, 0x1p-16, nan, 0, math.Inf(1)},
		{weights.F8E4M3FNUZ, 0x1p-10, 240, nan, none},
		{weights.F8E5M2FNUZ, 0x1p-17, 57344, nan, none},
	} {
		codes := make([]byte, 256)
		for i := range codes {
			codes[i] = byte(i)
		}
		m := checkpoint(t, `{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"g": {"targets": ["Linear"],
			"weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}}}`,
			stored{"weight", c.dtype, []int{1, 256}, codes}, stored{"weight_scale", weights.F32, []int{1}, []byte{0, 0, 0x80, 0x3F}})
		d, err := quant.Describe(m)
		testmodel.OK(t, err)
		matrix, err := d.Weights[0].Read(0)
		testmodel.OK(t, err)
		for code, want := range map[int]float64{1: c.least, 0x7F: c.most, 0x80: c.at80, 0x7C: c.inf} {
			got := float64(matrix.Value(0, code))
			if want != none && got != want && !(want == nan && got != got) {
				t.Errorf("%s: code %#x is %v, want %v", c.dtype, code, got, want)
			}
		}
		f, known := c.dtype.Format()
		for code := range 256 {
			if got := matrix.Value(0, code); known && math.Float32bits(got) != math.Float32bits(f.Value(uint32(code))) && got == got {
				t.Errorf("%s: code %#x is %v, want %v", c.dtype, code, got, f.Value(uint32(code)))
			}
			if got, opposite := matrix.Value(0, code), matrix.Value(0, code^0x80); code&0x7F != 0 && got != -opposite && got == got {
				t.Errorf("%s: code %#x is %v, and with the other sign %v", c.dtype, code, got, opposite)
			}
		}
	}
}
