package cuda

import (
	_ "embed"

	"github.com/lowtoggle/lowtoggle/gemm"
)

var (
	//go:embed kernels/warpgroup.cu
	warpgroupSource string
	//go:embed kernels/dequantisestationary.cu
	dequantiseStationarySource string
)

// stationary returns the kernel with the weights as the A operand, for any number of tokens. The sizes must match
// kernels/dequantisestationary.cu.
func stationary(p gemm.Problem) dequantiser {
	const tokens, outputs, stages = 256, 128, 6
	return dequantiser{
		name: "dequantise_stationary", sources: []string{warpgroupSource, dequantiseStationarySource},
		blocks: Grid{X: ceil(p.M, tokens), Y: ceil(p.N, outputs)}, threads: Grid{X: 384},
		shared: stages*tokens*128 + 2*stages*8, splitK: 1,
	}
}
