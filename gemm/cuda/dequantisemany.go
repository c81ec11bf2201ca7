package cuda

import (
	_ "embed"

	"github.com/lowtoggle/lowtoggle/gemm"
)

//go:embed kernels/dequantisemany.cu
var dequantiseManySource string

// Sizes of kernels/dequantisemany.cu.
const (
	manyTokens  = 256
	manyThreads = 384
	manyShared  = 6*manyTokens*128 + 2*6*8
)

// many is the kernel of a product of any number of tokens.
func many(p gemm.Problem) dequantiser {
	return dequantiser{
		name: "dequantise_many", source: dequantiseManySource,
		blocks: Grid{X: ceil(p.M, manyTokens), Y: ceil(p.N, tileRows)}, threads: Grid{X: manyThreads},
		shared: manyShared, splitK: 1,
	}
}
