package cost_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/weights"
)

// The bits that toggle between the rows of a tensor are counted.
func ExampleMeasure() {
	t := weights.Tensor{Info: weights.Info{Name: "w", DType: weights.BF16, Shape: []int{2, 2}},
		Data: []byte{0x80, 0x3f, 0x80, 0x3f, 0x80, 0x3f, 0x80, 0xbf}} // 1, 1; 1, −1
	a, err := cost.Measure(context.Background(), t, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.RowToggles.Sign, "sign toggles of", a.RowPairs(), "pairs")
	// Output: 1 sign toggles of 2 pairs
}

// The energy of a product with weights of zero is predicted by the calibration of an H200, relative to random weights.
func ExampleCalibration_Predict() {
	h200, err := cost.FindCalibration("h200")
	if err != nil {
		log.Fatal(err)
	}
	ones := func(_ context.Context, _, rows, _, cols int) ([]byte, error) {
		b := make([]byte, 2*rows*cols)
		for i := range b {
			b[i] = []byte{0x80, 0x3f}[i%2]
		}
		return b, nil
	}
	zeros := func(_ context.Context, _, rows, _, cols int) ([]byte, error) { return make([]byte, 2*rows*cols), nil }
	p := cost.Product{Type: arith.BF16, M: 512, N: 512, K: 512}
	r, err := h200.Predict(context.Background(), p, ones, zeros)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("saves energy:", r.Relative < 1)
	_, err = h200.Predict(context.Background(), p, nil, zeros)
	fmt.Println(err)
	// Output:
	// saves energy: true
	// an operand of the product is nil: give a function that returns its blocks
}
