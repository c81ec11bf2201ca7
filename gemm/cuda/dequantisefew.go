package cuda

import (
	_ "embed"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
)

//go:embed kernels/dequantisefew.cu
var dequantiseFewSource string

// Sizes of kernels/dequantisefew.cu.
const (
	fewTokens = gemm.FewTokens
	fewRing   = 256 // inputs
	fewWarps  = 8   // most of a block
	warpRows  = 32
	fewBlocks = 2 // on a multiprocessor at once
)

// few is the kernel of a product of at most fewTokens.
func (d *Device) few(p gemm.Problem) dequantiser {
	cluster, warps := d.divide(p)
	inputs := min(p.K, ceil(ceil(p.K, fewRing), cluster)*fewRing)
	return dequantiser{
		name: "dequantise_few", sources: []string{dequantiseFewSource}, defines: []string{fmt.Sprintf("CLUSTER=%d", cluster)},
		blocks: Grid{X: cluster, Y: ceil(p.N, warps*warpRows)}, threads: Grid{X: 32 * warps},
		shared: fewTokens * max(2*inputs+16, 4*(warps*warpRows+4)), splitK: cluster,
	}
}

// divide chooses the blocks of a product of few tokens: how many share the inputs, and the warps of each. The
// multiprocessor with most work decides the time.
func (d *Device) divide(p gemm.Problem) (cluster, warps int) {
	rings := ceil(p.K, fewRing)
	least := 0
	for c := 1; c <= 8 && (c == 1 || rings >= 2*c); c *= 2 {
		for w := fewWarps; w >= fewWarps/2; w-- {
			blocks := ceil(p.N, w*warpRows) * c
			const overhead = 24 // of a wave of blocks, in rings of a warp
			work := ceil(blocks, d.info.SMs)*w*ceil(rings, c) + overhead*ceil(blocks, d.info.SMs*fewBlocks)
			if least == 0 || work < least {
				cluster, warps, least = c, w, work
			}
		}
	}
	return cluster, warps
}
