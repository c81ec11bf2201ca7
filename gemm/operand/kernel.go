package operand

import (
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// kernel returns the role of a quantised layer's weights, the assumed kernel, and a description of the kernel that is
// assumed or measured.
func (o Options) kernel(f quant.Format, typ arith.Type, tokens int) (cost.Role, cost.Kernel, string, error) {
	role, k, err := o.Kernel.Role(f, typ.Operand(), tokens)
	name := string(k)
	if o.OnCard && typ == arith.BF16 {
		k, name = "", "lowtoggle's own dequantising kernel"
		if tokens <= gemm.FewTokens {
			role = cost.Stationary
		}
	} else if o.OnCard && k != cost.CuBLASLt {
		name = fmt.Sprintf("%s with the operands of %s", cost.CuBLASLt, k)
	}
	return role, k, fmt.Sprintf("%s: %s, %s", name, f, role.Slot()), err
}

// Kernels describes the kernels of products, each once. The kernel of unquantised layers comes last. If there are no
// quantised layers, the result is nil.
func Kernels(products []Product) (list []string) {
	plain := func(p Product) bool { return p.Kernel == "" }
	quantised := slices.DeleteFunc(slices.Clone(products), plain)
	if len(quantised) == 0 {
		return nil
	}
	for _, p := range append(quantised, products...) {
		if text := p.Multiplication(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}
