package operand

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Kernel names the GEMM library that multiplies quantised layers. The library and the number of tokens decide which
// operand the weights are. The zero value stands for the kernels that vLLM runs on Hopper.
type Kernel string

// The kernels.
const (
	CuBLASLt Kernel = "cublaslt"
	CUTLASS  Kernel = "cutlass"
	DeepGEMM Kernel = "deepgemm"
	Machete  Kernel = "machete"
	Marlin   Kernel = "marlin"
)

// kernels lists the libraries for each kind of operand, the usual one first. From from tokens on, the weights are the B
// operand, which streams; 0: always.
var kernels = map[string][]struct {
	name Kernel
	from int
}{
	"fp8":            {{CUTLASS, 65}, {CuBLASLt, never}},
	"fp8, block":     {{DeepGEMM, 32}, {CuBLASLt, never}},
	"int8":           {{CUTLASS, 0}, {CuBLASLt, never}},
	"dequantised":    {{Machete, never}, {Marlin, 9}},
	"dequantised fp": {{Marlin, 9}},
}

const never = 1 << 30

// ParseKernel reads a kernel's name.
func ParseKernel(s string) (Kernel, error) {
	all := []Kernel{CuBLASLt, CUTLASS, DeepGEMM, Machete, Marlin}
	if k := Kernel(s); slices.Contains(all, k) {
		return k, nil
	}
	var names []string
	for _, k := range all {
		names = append(names, string(k))
	}
	return "", fmt.Errorf("unknown kernel %q: use one of %s", s, strings.Join(names, ", "))
}

// role is the weights' role in products of a quantised format and so many tokens, and the kernel that is assumed. A kernel that
// does not multiply the format is an error.
func (k Kernel) role(f quant.Format, typ arith.Type, tokens int) (cost.Role, Kernel, error) {
	kind := "dequantised"
	switch {
	case typ == arith.FP8 && f.Per == "block":
		kind = "fp8, block"
	case typ == arith.FP8:
		kind = "fp8"
	case typ == arith.INT8:
		kind = "int8"
	case strings.HasSuffix(f.Codes, "fp4"):
		kind = "dequantised fp"
	}
	var names []string
	for _, of := range kernels[kind] {
		if k != "" && k != of.name {
			names = append(names, string(of.name))
			continue
		}
		if tokens >= of.from {
			return cost.Streaming, of.name, nil
		}
		return cost.Stationary, of.name, nil
	}
	return 0, "", fmt.Errorf("%s does not multiply layers in %s on Hopper; %s: choose one of these, or none", k, f, strings.Join(names, " or "))
}

// kernel returns the role of a quantised layer's weights, and a description of the kernel that is assumed or measured.
func (o Options) kernel(f quant.Format, typ arith.Type, tokens int) (cost.Role, string, error) {
	if o.OnCard && typ == arith.BF16 {
		return cost.Stationary, fmt.Sprintf("lowtoggle's own dequantising kernel: %s, weights are the A operand", f), nil
	}
	role, k, err := o.Kernel.role(f, typ, tokens)
	slot := "A"
	if role == cost.Streaming {
		slot = "B"
	}
	name := string(k)
	if o.OnCard && k != CuBLASLt {
		name = fmt.Sprintf("%s with the operands of %s", CuBLASLt, k)
	}
	return role, fmt.Sprintf("%s: %s, weights are the %s operand", name, f, slot), err
}

// Kernels lists the kernels of quantised layers' products, each once.
func Kernels(products []Product) (list []string) {
	for _, p := range products {
		if p.Kernel != "" && !slices.Contains(list, p.Kernel) {
			list = append(list, p.Kernel)
		}
	}
	return list
}
