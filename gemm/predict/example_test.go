package predict_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// Two models are compared by the calibration of an H200, in one call. They are random here, so one costs
// what the other does.
func ExampleModels() {
	before, after, remove := testmodel.Pair("llama-tiny") // usually after is what a conversion has made of before
	defer remove()
	h200, err := cost.FindCalibration("h200")
	if err != nil {
		log.Fatal(err)
	}

	r, err := predict.Models(context.Background(), h200, before, after, predict.Options{})
	if err != nil {
		log.Fatal(err)
	}
	p := r.Predictions[1]
	fmt.Printf("%d layers, %d tokens: %.2f of the first model's energy\n", p.Count, p.Layers[0].Problem.M, p.Over.Relative)
	// Output: 15 layers, 8192 tokens: 1.00 of the first model's energy
}

// Sources are patterns, tensors or models. Here the saving of sparse weights is predicted for decode.
func ExampleSources() {
	h200, err := cost.FindCalibration("h200")
	if err != nil {
		log.Fatal(err)
	}
	sources := []operand.Source{operand.MustParse("normal(0,0.02)"), operand.MustParse("normal(0,0.02) | sparse(50%)"), operand.MustParse("zeros")}
	r, err := predict.Sources(context.Background(), h200, sources, predict.Options{
		Operands: operand.Options{Tokens: operand.DecodeTokens, N: 4096, K: 4096}, Cold: true, Compare: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range r.Predictions[1:] {
		fmt.Printf("%s saves energy: %v\n", p.Name, p.Over.Interval[1] < 1)
	}
	// Output:
	// normal(0,0.02) | sparse(50%) saves energy: true
	// zeros saves energy: true
}
