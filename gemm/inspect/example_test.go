package inspect_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/inspect"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// What a model holds, and how many of its bits toggle.
func ExampleModel() {
	m, _, remove := testmodel.Pair("llama-tiny")
	defer remove()
	h200, err := cost.FindCalibration("h200")
	if err != nil {
		log.Fatal(err)
	}
	r, err := inspect.Model(context.Background(), m, inspect.Options{Calibration: h200, Workload: cost.DefaultWorkload})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Family, len(r.Tensors), "tensors")
	// Output: llama 21 tensors
}
