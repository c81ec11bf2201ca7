package measure_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// The energy of two models is measured in one call: here on a simulated card, which needs no GPU and shows
// what a report looks like. measure.Open takes a real one.
func ExampleModels() {
	before, after, remove := testmodel.Pair("llama-tiny") // usually after is what a conversion has made of before
	defer remove()
	card := measure.Simulated(power.DefaultSim())
	defer card.Close()

	r, err := measure.Models(context.Background(), []measure.Named{{Name: "card 0", Machine: card}}, before, after, measure.ModelOptions{
		Workload: cost.Workload{Prefill: 0.3, Decode: 0.7},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range r.Cards[0].Phases {
		fmt.Printf("%s, %d tokens: %d layers of %d kinds take %.2f of the energy\n", p.Phase, p.Tokens, p.Total.Layers, len(p.Layers), p.Total.Relative)
	}
	fmt.Println("the cards are simulated:", r.Cards[0].Simulated)
	// Output:
	// prefill, 8192 tokens: 15 layers of 8 kinds take 1.00 of the energy
	// decode, 16 tokens: 15 layers of 8 kinds take 1.00 of the energy
	// the cards are simulated: true
}
