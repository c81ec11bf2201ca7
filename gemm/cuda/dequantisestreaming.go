package cuda

import (
	_ "embed"

	"github.com/lowtoggle/lowtoggle/gemm"
)

//go:embed kernels/dequantisestreaming.cu
var dequantiseStreamingSource string

// streaming returns the kernel for any number of tokens with the weights as the B operand. The sizes must match
// kernels/dequantisestreaming.cu.
func streaming(p gemm.Problem) dequantiser {
	const tokens, outputs, stages = 128, 256, 4
	return dequantiser{
		name: "dequantise_streaming", sources: []string{warpgroupSource, dequantiseStreamingSource},
		blocks: Grid{X: ceil(p.M, tokens), Y: ceil(p.N, outputs)}, threads: Grid{X: 256},
		shared: stages * (tokens + outputs) * 128, splitK: 1,
	}
}
