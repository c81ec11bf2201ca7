package measure_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// The energy of two models is measured in one call: here on a simulated card, which needs no GPU and shows
// what a report looks like. measure.Open takes a real one.
func ExampleModels() {
	dir, err := os.MkdirTemp("", "measure")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	config, err := synth.Config("llama-tiny")
	if err != nil {
		log.Fatal(err)
	}
	var models [2]*weights.Model // usually the second is what a conversion has made of the first
	for i := range models {
		name := filepath.Join(dir, fmt.Sprint("model", i))
		if err := synth.Folder(context.Background(), config, name, synth.Options{Seed: uint64(i)}); err != nil {
			log.Fatal(err)
		}
		if models[i], err = weights.Open(name); err != nil {
			log.Fatal(err)
		}
		defer models[i].Close()
	}
	card := measure.Simulated(power.DefaultSim())
	defer card.Close()

	r, err := measure.Models(context.Background(), []measure.Named{{Name: "card 0", Machine: card}}, models[0], models[1], measure.ModelOptions{
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
