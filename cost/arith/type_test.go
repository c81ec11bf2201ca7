package arith_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

func TestTypeNamesReadBack(t *testing.T) {
	for _, typ := range arith.Types() {
		if back, err := arith.ParseType(fmt.Sprint(typ)); err != nil || back != typ {
			t.Errorf("%v reads back as %v, %v", typ, back, err)
		}
	}
	if _, err := arith.ParseType("fp64"); err == nil || !strings.Contains(err.Error(), "fp16-cuda, fp8") {
		t.Error(err)
	}
	for d, want := range map[weights.DType]arith.Type{weights.F32: arith.FP32, weights.F16: arith.FP16, weights.BF16: arith.BF16, weights.F8E4M3: arith.FP8, weights.I8: arith.INT8} {
		if got, ok := arith.TypeOf(d); !ok || got != want {
			t.Errorf("TypeOf(%v) = %v, %v", d, got, ok)
		}
	}
	if _, ok := arith.TypeOf(weights.F8E5M2); ok {
		t.Error("E5M2 has no type of its own")
	}
}
