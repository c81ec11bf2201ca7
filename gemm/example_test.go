package gemm_test

import (
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// The reference product y = x·wᵀ on the CPU, of matrices in float32.
func ExampleMultiply() {
	x, w := gemm.NewMatrix(weights.F32, 1, 2), gemm.NewMatrix(weights.F32, 3, 2)
	f, _ := weights.F32.Format()
	for i, v := range []float32{1, 2} {
		f.SetElem(x.Data, i, f.FromValue(v))
	}
	for i, v := range []float32{1, 0, 0, 1, 1, 1} {
		f.SetElem(w.Data, i, f.FromValue(v))
	}
	y, err := gemm.Multiply(gemm.Problem{M: 1, N: 3, K: 2, Type: arith.FP32}, x, w)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [1 2 3]
}
