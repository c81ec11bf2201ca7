package cuda

import (
	_ "embed"
	"encoding/binary"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
)

//go:embed kernels/dequantisefew.cu
var dequantiseFewSource string

// Sizes of kernels/dequantisefew.cu.
const (
	fewTokens     = gemm.FewTokens
	fewInputBytes = fewTokens * unitCols * 2
	fewSumBytes   = fewTokens * unitRows * 4
	fewRing       = 2 // units of a strip in a warp's ring
)

// fewBlock is a block of dequantise_few. blocks is the number of blocks on a multiprocessor at once.
type fewBlock struct{ strips, warps, blocks, cluster int }

// few returns the kernel for a product of at most fewTokens tokens.
func (d *Device) few(p gemm.Problem, f format) dequantiser {
	b := divideFew(p, f, d.info.SMs)
	stage := fewInputBytes + b.strips*(unitBytes+f.groupBytes())
	return dequantiser{
		name: "dequantise_few", sources: []string{dequantiseFewSource},
		defines: []string{
			fmt.Sprintf("UNITS=%d", p.K/unitCols), fmt.Sprintf("STRIPS=%d", b.strips), fmt.Sprintf("WARPS=%d", b.warps),
			fmt.Sprintf("BLOCKS=%d", b.blocks), fmt.Sprintf("CLUSTER=%d", b.cluster),
		},
		blocks: Grid{X: b.cluster, Y: ceil(p.N, b.strips*unitRows)}, threads: Grid{X: 32 * b.warps},
		shared: b.warps * max(fewRing*stage, b.strips*fewSumBytes), splitK: b.cluster,
	}
}

// divideFew divides a product of few tokens among blocks. The multiprocessor with most work determines the time. The
// constants were fitted to an H200: bench/results/h200/quantised/few.txt.
func divideFew(p gemm.Problem, f format, sms int) (best fewBlock) {
	const (
		inputs  = 0.5 // time of the tokens' inputs of a unit, in units of a strip
		cluster = 50  // of a cluster's sum
		wave    = 150 // of the start and the end of a wave of blocks
	)
	most := 14 // strips whose sums fit the registers if a multiprocessor has one block
	if f.fp4 || f.zeros {
		most = 8 // these formats take more instructions and so more warps
	}
	least := 0.0
	for _, b := range []fewBlock{{warps: 16, blocks: 1}, {warps: 8, blocks: 2}, {warps: 8, blocks: 1}} {
		first, last := 1, 8
		switch {
		case b.warps == 16:
			last = 4
		case b.blocks == 1:
			first, last = 9, most
		}
		for b.strips = min(last, ceil(p.N, tileRows)*tileRows/unitRows); b.strips >= first; b.strips-- {
			for b.cluster = 1; b.cluster <= min(2, p.K/unitCols); b.cluster++ {
				blocks := ceil(p.N, b.strips*unitRows) * b.cluster
				units := ceil(ceil(p.K/unitCols, b.cluster), b.warps) * b.warps
				work := float64(ceil(blocks, sms)*units)*(float64(b.strips)+inputs) + wave*float64(ceil(blocks, sms*b.blocks)) + cluster*float64(b.cluster-1)
				if least == 0 || work < least {
					best, least = b, work
				}
			}
		}
	}
	return best
}

// takesFew reports whether dequantise_few multiplies so many tokens by these codes.
func takesFew(tokens int, c *gemm.Codes) bool { return tokens <= fewTokens && fewExact(c) }

// fewExact reports whether dequantise_few, which multiplies scales by powers of two, is exact with these scales.
func fewExact(c *gemm.Codes) bool {
	if c.FP4 {
		return true
	}
	for i := 0; i < len(c.Scales); i += 2 {
		s := binary.LittleEndian.Uint16(c.Scales[i:]) & 0x7fff
		if s != 0 && (s < 0x0d80 || s >= 0x4500) { // 2^-100, 2^11
			return false
		}
	}
	return true
}
