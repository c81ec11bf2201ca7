package quant_test

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestOperandByGroup: kernels read the inputs group by group, with scales in BF16 and without the global scale.
func TestOperandByGroup(t *testing.T) {
	values := make([]float32, 16)
	for i := range values {
		values[i] = float32(i)
	}
	m := &quant.Matrix{Book: quant.Book{Codes: "int4", Values: values, Zero: 8, ScaleType: weights.F16}, N: 2, K: 4, Codes: []byte{9, 10, 11, 12, 0, 8, 15, 7},
		Scales: []float32{1, 3.001, 0.5, 2}, Block: [2]int{1, 2}, Group: []int32{1, 0, 1, 0}, Global: 5}
	if order := m.InputsByGroup(); !slices.Equal(order, []int{1, 3, 0, 2}) {
		t.Fatalf("%v", order)
	}
	f, _ := weights.BF16.Format()
	var got []float32
	for _, rows := range [][2]int{{0, 1}, {1, 1}} {
		data := m.Operand(weights.BF16, rows[0], rows[1])
		for k := range 4 {
			got = append(got, f.Value(f.Elem(data, k)))
		}
	}
	if want := []float32{2, 4, 3, 9, 0, -0.5, -16, 14}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	m.Group = []int32{0, 0, 1, 1}
	if m.InputsByGroup() != nil {
		t.Error("inputs that lie by group have an order")
	}
}
