package profile_test

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/weights"
)

// A simulated card draws about 450 W for weights of zeros. measure.Open opens a real one.
func ExampleMeasure() {
	card := power.DefaultSim()
	card.Leakage = 0
	zeros := gemm.Matrix{DType: weights.BF16, Rows: 64, Cols: 64, Data: make([]byte, 2*64*64)}
	product := cuda.Product{Name: "zeros", Problem: gemm.Problem{M: 64, N: 64, K: 64, Type: arith.BF16}, X: zeros, W: zeros}
	r, err := profile.Measure(context.Background(), measure.Simulated(card), []cuda.Product{product}, nil, profile.Options{
		Length: 300 * time.Millisecond, Runs: 12, Step: 5 * time.Millisecond, Resamples: 10,
	})
	if err != nil {
		panic(err)
	}
	ssp := r.Profiles[0].Steady.SSP
	fmt.Printf("steady: %v, at about %.0f W\n", ssp.Found, 10*math.Round(ssp.Watts/10))
	// Output: steady: true, at about 450 W
}
