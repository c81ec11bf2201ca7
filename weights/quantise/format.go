package quantise

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/spelling"
)

// Format is a layout of quantised checkpoints.
type Format struct {
	Name string // "int4"
	Doc  string // a phrase: the method that writes the format, and its types
	// Codes are "fp8", "int8", "int4", "mxfp4" or "nvfp4", as in quant.Format.
	Codes string
	// Per is the part of the weight that shares a scale: "tensor", "channel", "block" or "group".
	Per string
	// Block is the size of a block, rows × columns, or of a group, 1 × columns.
	Block [2]int
	// Zeros is true if every group has its own zero point. Integers without zero points are symmetric.
	Zeros bool
	// Ordered is true if a group index gives the group of each input. Otherwise neighbouring inputs form a group.
	Ordered bool
	// Converts is true if unquantised models can be converted to the format; see [NewTarget].
	Converts bool

	layout *layout
	free   bool // the group size can be chosen
	sized  bool // a group size was chosen
}

// formats lists all formats, in the order in which help texts name them.
var formats = []Format{
	{Name: "fp8", Doc: "compressed-tensors: FP8 E4M3, a scale for each output", Codes: "fp8", Per: "channel", Converts: true, layout: floatCompressed},
	{Name: "fp8-tensor", Doc: "compressed-tensors: FP8 E4M3, one scale for the weights, one scale for the inputs", Codes: "fp8", Per: "tensor", layout: floatCompressed},
	{Name: "fp8-block", Doc: "compressed-tensors: FP8 E4M3, blocks of 128×128", Codes: "fp8", Per: "block", Block: [2]int{128, 128}, Converts: true, layout: floatCompressed},
	{Name: "deepseek-fp8", Doc: "DeepSeek and Qwen: FP8 E4M3, blocks of 128×128, F32 scales weight_scale_inv", Codes: "fp8", Per: "block", Block: [2]int{128, 128}, Converts: true, layout: deepSeek},
	{Name: "fbgemm", Doc: "fbgemm_fp8: FP8 E4M3, an F32 scale for each output", Codes: "fp8", Per: "channel", layout: fbgemm},
	{Name: "modelopt-fp8", Doc: "ModelOpt: FP8 E4M3, one scale for the weights, one scale for the inputs", Codes: "fp8", Per: "tensor", layout: modelOptFP8},
	{Name: "int8", Doc: "compressed-tensors: INT8, a scale for each output", Codes: "int8", Per: "channel", Converts: true, layout: intCompressed},
	{Name: "int4", Doc: "compressed-tensors: packed INT4, groups of 128, symmetric", Codes: "int4", Per: "group", Block: [2]int{1, 128}, Converts: true, layout: packed, free: true},
	{Name: "int4-asym", Doc: "compressed-tensors: packed INT4, groups of 128, with zero points", Codes: "int4", Per: "group", Block: [2]int{1, 128}, Zeros: true, Converts: true, layout: packed, free: true},
	{Name: "gptq", Doc: "GPTQ, version 1: INT4, groups of 128, symmetric", Codes: "int4", Per: "group", Block: [2]int{1, 128}, layout: gptq, free: true},
	{Name: "gptq-v2", Doc: "GPTQ, version 2: INT4, groups of 128, symmetric", Codes: "int4", Per: "group", Block: [2]int{1, 128}, layout: gptq2, free: true},
	{Name: "gptq-order", Doc: "GPTQ, version 1: INT4, groups of 128 inputs in the order of a group index (desc_act), with zero points", Codes: "int4", Per: "group", Block: [2]int{1, 128}, Zeros: true, Ordered: true, layout: gptq, free: true},
	{Name: "awq", Doc: "AWQ: INT4, groups of 128, with zero points", Codes: "int4", Per: "group", Block: [2]int{1, 128}, Zeros: true, layout: awq, free: true},
	{Name: "mxfp4", Doc: "compressed-tensors: FP4 E2M1, groups of 32 with scales that are powers of two", Codes: "mxfp4", Per: "group", Block: [2]int{1, 32}, Converts: true, layout: fourCompressed},
	{Name: "nvfp4", Doc: "compressed-tensors: FP4 E2M1, groups of 16 with E4M3 scales, and a global scale", Codes: "nvfp4", Per: "group", Block: [2]int{1, 16}, Converts: true, layout: fourCompressed},
	{Name: "modelopt-nvfp4", Doc: "ModelOpt: FP4 E2M1, groups of 16 with E4M3 scales, a global scale for the weights, one scale for the inputs", Codes: "nvfp4", Per: "group", Block: [2]int{1, 16}, layout: modelOptFour},
}

// Formats returns all formats.
func Formats() []Format { return append([]Format{}, formats...) }

// Names returns the names of all formats.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}

// TargetNames returns the names of the formats that models can be converted to.
func TargetNames() []string {
	var names []string
	for _, f := range formats {
		if f.Converts {
			names = append(names, f.Name)
		}
	}
	return names
}

// Parse returns the format of a name such as "int4", or "int4=64" for groups of another size.
func Parse(s string) (Format, error) { return parse(s, Names()) }

// ParseTarget is Parse for formats that models can be converted to. A format without Converts is an error.
func ParseTarget(s string) (Format, error) {
	f, err := parse(s, TargetNames())
	if err == nil && !f.Converts {
		err = notConverted(f.Name)
	}
	return f, err
}

func notConverted(name string) error {
	return fmt.Errorf("models are not converted to the format %s: choose one of %s", name, strings.Join(TargetNames(), ", "))
}

// parse is Parse; its errors list the given names.
func parse(s string, names []string) (Format, error) {
	name, size, sized := strings.Cut(s, "=")
	for _, f := range formats {
		if f.Name != name {
			continue
		}
		if !sized {
			return f, nil
		}
		if !f.free {
			return Format{}, fmt.Errorf("format %s takes no group size", name)
		}
		n, err := strconv.Atoi(size)
		if err != nil || n < 8 || n%8 != 0 || n > 1<<20 {
			return Format{}, fmt.Errorf("format %q: the group size must be a multiple of 8, at most %d", s, 1<<20)
		}
		return f.withGroup(n), nil
	}
	return Format{}, fmt.Errorf("there is no format %q%s; choose one of %s", s, spelling.DidYouMean("", name, names), strings.Join(names, ", "))
}

// String returns the name that Parse reads.
func (f Format) String() string {
	if f.sized {
		return fmt.Sprintf("%s=%d", f.Name, f.Block[1])
	}
	return f.Name
}

// Blocks returns the number of scales along outputs (rows) and inputs (cols) of a matrix of n outputs and k inputs.
func (f Format) Blocks(n, k int) (rows, cols int) {
	switch f.Per {
	case "tensor":
		return 1, 1
	case "channel":
		return n, 1
	}
	return ceil(n, f.Block[0]), ceil(k, f.Block[1])
}

func ceil(a, b int) int { return (a + b - 1) / b }
