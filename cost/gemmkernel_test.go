package cost_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

var (
	channel = quant.Format{Codes: "fp8", Per: "channel"}
	int8    = quant.Format{Codes: "int8", Per: "channel"}
	int4    = quant.Format{Codes: "int4", Per: "group"}
	fp4     = quant.Format{Codes: "nvfp4", Per: "group"}
)

// TestKernelsDecideTheRole: the roles agree with the kernels' sources, for formats and numbers of tokens.
func TestKernelsDecideTheRole(t *testing.T) {
	block := quant.Format{Codes: "fp8", Per: "block", Block: [2]int{128, 128}}
	for _, c := range []struct {
		kernel  cost.Kernel
		f       quant.Format
		operand weights.DType
		tokens  int
		want    cost.Role
		name    cost.Kernel
	}{
		{"", channel, weights.F8E4M3, 8192, cost.Streaming, cost.CUTLASS},
		{"", channel, weights.F8E4M3, 65, cost.Streaming, cost.CUTLASS},
		{"", channel, weights.F8E4M3, 64, cost.Stationary, cost.CUTLASS},
		{cost.CuBLASLt, channel, weights.F8E4M3, 8192, cost.Stationary, cost.CuBLASLt},
		{"", block, weights.F8E4M3, 32, cost.Streaming, cost.DeepGEMM},
		{"", block, weights.F8E5M2, 31, cost.Stationary, cost.DeepGEMM},
		{"", int8, weights.I8, 16, cost.Streaming, cost.CUTLASS},
		{"", int4, weights.BF16, 8192, cost.Stationary, cost.Machete},
		{cost.Marlin, int4, weights.BF16, 16, cost.Streaming, cost.Marlin},
		{cost.Marlin, int4, weights.BF16, 9, cost.Streaming, cost.Marlin},
		{cost.Marlin, int4, weights.BF16, 8, cost.Stationary, cost.Marlin},
		{"", fp4, weights.BF16, 9, cost.Streaming, cost.Marlin},
		{"", fp4, weights.BF16, 8, cost.Stationary, cost.Marlin},
		{"", fp4, weights.BF16, 16, cost.Streaming, cost.Marlin},
	} {
		role, name, err := c.kernel.Role(c.f, c.operand, c.tokens)
		if err != nil || role != c.want || name != c.name {
			t.Errorf("%v: %v by %s, %v", c, role, name, err)
		}
	}
	if _, _, err := cost.Marlin.Role(channel, weights.F8E4M3, 16); err == nil || !strings.Contains(err.Error(), "cutlass or cublaslt") {
		t.Error(err)
	}
	if _, err := cost.ParseKernel("triton"); err == nil || !strings.Contains(err.Error(), "cublaslt, cutlass") {
		t.Error(err)
	}
	if k, err := cost.ParseKernel("marlin"); err != nil || k != cost.Marlin {
		t.Error(k, err)
	}
}

// TestAssumedKernels: every kernel is listed once, with its phase if phases differ. Without quantised layers the list
// is empty.
func TestAssumedKernels(t *testing.T) {
	plain := cost.Multiplied{Operand: weights.BF16}
	layers := []cost.Multiplied{{Operand: weights.F8E4M3, Format: &channel}, plain, {Operand: weights.F8E4M3, Format: &channel}}
	both := cost.Workload{Prefill: 0.5, Decode: 0.5}
	want := []string{"cutlass: fp8, per channel, weights are the B operand in prefill", "cutlass: fp8, per channel, weights are the A operand in decode",
		"cublaslt: unquantised layers, weights are the A operand"}
	if have := cost.AssumedKernels(layers, cost.Stationary, both); !slices.Equal(have, want) {
		t.Errorf("%q", have)
	}
	want = []string{"machete: int4, per group, weights are the A operand", "cublaslt: unquantised layers, weights are the B operand"}
	if have := cost.AssumedKernels([]cost.Multiplied{{Operand: weights.BF16, Format: &int4, Packed: true}, plain}, cost.Streaming, cost.DefaultWorkload); !slices.Equal(have, want) {
		t.Errorf("%q", have)
	}
	if have := cost.AssumedKernels([]cost.Multiplied{plain}, cost.Stationary, both); have != nil {
		t.Errorf("%q", have)
	}
}
