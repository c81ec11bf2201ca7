package serve_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
)

// Two servers on GPU 0, one with the original weights and one with the converted ones. Both must be running.
func ExampleCompare() {
	ctx := context.Background() // signal.NotifyContext in a program: figures so far are kept
	card, err := power.Open("0")
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	servers := serve.Servers{
		Baseline: serve.Server{Name: "before", URL: "http://127.0.0.1:8000/v1"},
		Variants: []serve.Server{{Name: "after", URL: "http://127.0.0.1:8001/v1"}},
	}
	r, err := serve.Compare(ctx, []power.Card{card}, servers, serve.Options{
		Workload: serve.Workload{Concurrency: 64, PromptTokens: 1024, OutputTokens: 256, Vocab: 32000},
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
	}
	if r != nil {
		after := r.Variants[0]
		fmt.Printf("%.4f of the energy per output token, 95 %% %.4f, at %.0f tokens/s\n", after.RelativeEnergy, after.Interval, after.Speed)
	}
}
