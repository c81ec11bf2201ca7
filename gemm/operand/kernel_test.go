package operand

import (
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// On the card, four-bit weights are the same operand as in the prediction, except with few tokens.
func TestOwnKernelHasTheRoleOfTheAssumedOne(t *testing.T) {
	int4, fp4 := quant.Format{Codes: "int4", Per: "group"}, quant.Format{Codes: "nvfp4", Per: "group"}
	for _, c := range []struct {
		kernel cost.Kernel
		f      quant.Format
		tokens int
		want   cost.Role
	}{
		{"", int4, 4096, cost.Stationary},
		{cost.Machete, int4, 4096, cost.Stationary},
		{cost.Marlin, int4, 4096, cost.Streaming},
		{"", fp4, 4096, cost.Streaming},
		{cost.Marlin, int4, gemm.FewTokens + 1, cost.Streaming},
		{cost.Marlin, int4, gemm.FewTokens, cost.Stationary},
	} {
		role, assumed, text, err := Options{Kernel: c.kernel, OnCard: true}.kernel(c.f, arith.BF16, c.tokens)
		want := fmt.Sprintf("lowtoggle's own dequantising kernel: %s, %s", c.f, c.want.Slot())
		if err != nil || role != c.want || assumed != "" || text != want {
			t.Errorf("%s, %d tokens: %v, %q, %q, %v", c.kernel, c.tokens, role, assumed, text, err)
		}
	}
	if _, _, _, err := (Options{Kernel: cost.CUTLASS, OnCard: true}).kernel(int4, arith.BF16, 4096); err == nil {
		t.Error("a kernel is measured that does not multiply the format")
	}
}
