package operand

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// The roles are those of the kernels' sources, for formats and numbers of tokens.
func TestKernelsDecideTheRole(t *testing.T) {
	channel, block := quant.Format{Codes: "fp8", Per: "channel"}, quant.Format{Codes: "fp8", Per: "block", Block: [2]int{128, 128}}
	int8, int4, fp4 := quant.Format{Codes: "int8", Per: "channel"}, quant.Format{Codes: "int4", Per: "group"}, quant.Format{Codes: "nvfp4", Per: "group"}
	for _, c := range []struct {
		kernel Kernel
		f      quant.Format
		typ    arith.Type
		tokens int
		want   cost.Role
		name   Kernel
	}{
		{"", channel, arith.FP8, 8192, cost.Streaming, CUTLASS},
		{"", channel, arith.FP8, 65, cost.Streaming, CUTLASS},
		{"", channel, arith.FP8, 64, cost.Stationary, CUTLASS},
		{CuBLASLt, channel, arith.FP8, 8192, cost.Stationary, CuBLASLt},
		{"", block, arith.FP8, 32, cost.Streaming, DeepGEMM},
		{"", block, arith.FP8, 31, cost.Stationary, DeepGEMM},
		{"", int8, arith.INT8, 16, cost.Streaming, CUTLASS},
		{"", int4, arith.BF16, 8192, cost.Stationary, Machete},
		{Marlin, int4, arith.BF16, 16, cost.Streaming, Marlin},
		{Marlin, int4, arith.BF16, 8, cost.Stationary, Marlin},
		{"", fp4, arith.BF16, 16, cost.Streaming, Marlin},
	} {
		role, name, err := c.kernel.role(c.f, c.typ, c.tokens)
		if err != nil || role != c.want || name != c.name {
			t.Errorf("%v: %v by %s, %v", c, role, name, err)
		}
	}
	if _, _, err := Marlin.role(channel, arith.FP8, 16); err == nil || !strings.Contains(err.Error(), "cutlass or cublaslt") {
		t.Error(err)
	}
	if _, err := ParseKernel("triton"); err == nil || !strings.Contains(err.Error(), "cublaslt, cutlass") {
		t.Error(err)
	}
	if k, err := ParseKernel("marlin"); err != nil || k != Marlin {
		t.Error(k, err)
	}
}
