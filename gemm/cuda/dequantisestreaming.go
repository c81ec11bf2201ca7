package cuda

import (
	_ "embed"

	"github.com/lowtoggle/lowtoggle/gemm"
)

//go:embed kernels/dequantisestreaming.cu
var dequantiseStreamingSource string

// streaming is the kernel of a product of any number of tokens with the weights as the B operand. Sizes are those of
// kernels/dequantisestreaming.cu.
func streaming(p gemm.Problem) dequantiser {
	const tokens, outputs, stages = 128, 256, 4
	return dequantiser{
		name: "dequantise_streaming", sources: []string{warpgroupSource, dequantiseStreamingSource},
		blocks: Grid{X: ceil(p.M, tokens), Y: ceil(p.N, outputs)}, threads: Grid{X: 256},
		shared: stages * (tokens + outputs) * 128, splitK: 1,
	}
}
