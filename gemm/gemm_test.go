package gemm

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/lowtoggle/lowtoggle/weights"
)

func bf16(shape []int, values ...float32) weights.Tensor {
	t := weights.Tensor{Info: weights.Info{Name: "w", DType: weights.BF16, Shape: shape}, File: "f"}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(math.Float32bits(v)>>16))
	}
	return t
}

func TestLinear(t *testing.T) {
	x := mat.NewDense(1, 3, []float64{1, 10, 100})
	want := mat.NewDense(1, 2, []float64{321, 654})
	for outAxis, w := range []weights.Tensor{
		bf16([]int{2, 3}, 1, 2, 3, 4, 5, 6),
		bf16([]int{3, 2}, 1, 4, 2, 5, 3, 6),
	} {
		m, err := Weight(w, outAxis)
		if err != nil {
			t.Fatal(err)
		}
		if y := Linear(x, m); !mat.Equal(y, want) {
			t.Errorf("outputs on axis %d: %v, want %v", outAxis, mat.Formatted(y), mat.Formatted(want))
		}
	}
}

func TestWeightRefuses(t *testing.T) {
	for name, bad := range map[string]weights.Tensor{
		"vector":  bf16([]int{2}, 1, 2),
		"integer": {Info: weights.Info{Name: "w", DType: weights.I64, Shape: []int{1, 1}}, Data: make([]byte, 8), File: "f"},
		"empty":   bf16([]int{0, 4}),
	} {
		if _, err := Weight(bad, 0); err == nil || !strings.Contains(err.Error(), `tensor "w"`) {
			t.Errorf("%s: error %v does not name the tensor", name, err)
		}
	}
}
