package cost

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Kernel names the GEMM library that multiplies quantised layers. The library and the number of tokens determine
// which operand the weights are. The zero value stands for the kernels that vLLM runs on Hopper.
type Kernel string

// The libraries that multiply quantised layers.
const (
	CuBLASLt Kernel = "cublaslt"
	CUTLASS  Kernel = "cutlass"
	DeepGEMM Kernel = "deepgemm"
	Machete  Kernel = "machete"
	Marlin   Kernel = "marlin"
)

// kernels lists the libraries for each kind of operand, the default first. From from tokens on, the weights are the B
// operand (streaming); 0: always.
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

// ParseKernel parses a kernel's name.
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

// Role returns the role of the weights in products of a quantised format, and the assumed kernel. operand is the type
// that the tensor cores read. A library without a kernel for the format is an error.
func (k Kernel) Role(f quant.Format, operand weights.DType, tokens int) (Role, Kernel, error) {
	kind := "dequantised"
	switch typ := typeOf(operand); {
	case typ == typeOf(weights.F8E4M3) && f.Per == "block":
		kind = "fp8, block"
	case typ == typeOf(weights.F8E4M3):
		kind = "fp8"
	case typ == typeOf(weights.I8):
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
			return Streaming, of.name, nil
		}
		return Stationary, of.name, nil
	}
	return 0, "", fmt.Errorf("%s has no kernel for layers in %s on Hopper: choose %s, or name no kernel", k, f, strings.Join(names, " or "))
}

// Slot returns a text that names the weights' operand of the GEMM.
func (r Role) Slot() string {
	if r == Streaming {
		return "weights are the B operand"
	}
	return "weights are the A operand"
}

// Multiplied describes how a linear layer is multiplied: the type that the tensor cores read, and the format of a
// quantised layer (nil for unquantised layers).
type Multiplied struct {
	Operand weights.DType
	Format  *quant.Format
	// Packed is true if the kernel reads four-bit codes from memory and dequantises them to Operand.
	Packed bool
}

// AssumedKernels describes the kernels that predictions of layers assume in a workload, without repetition. The
// kernel determines the role of quantised weights. role is the role of unquantised weights, whose kernel comes last.
// Without quantised layers the result is nil.
func AssumedKernels(layers []Multiplied, role Role, l Workload) (list []string) {
	if !slices.ContainsFunc(layers, func(m Multiplied) bool { return m.Format != nil }) {
		return nil
	}
	plain := func(m Multiplied) bool { return m.Format == nil }
	for _, m := range slices.Concat(slices.DeleteFunc(slices.Clone(layers), plain), layers) {
		var texts []string
		for _, phase := range l.phases() {
			text := m.kernel(role, phase.tokens)
			if len(texts) > 0 && texts[0] != text {
				texts = []string{texts[0] + " in prefill", text + " in decode"}
				break
			}
			texts = []string{text}
		}
		for _, text := range texts {
			if !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// kernel describes the kernel of a layer.
func (m Multiplied) kernel(role Role, tokens int) string {
	if m.Format == nil {
		return fmt.Sprintf("%s: unquantised layers, %s", CuBLASLt, role.Slot())
	}
	own, name, _ := Kernel("").Role(*m.Format, m.Operand, tokens) // every format has a default kernel
	return fmt.Sprintf("%s: %s, %s", name, *m.Format, own.Slot())
}

// phase is a part of a workload.
type phase struct {
	share  float64
	tokens int
	cold   bool
}

// phases returns the phases of the workload whose share is not zero.
func (w Workload) phases() []phase {
	all := []phase{{w.Prefill, PrefillTokens, false}, {w.Decode, DecodeTokens, true}}
	return slices.DeleteFunc(all, func(p phase) bool { return p.share == 0 })
}
