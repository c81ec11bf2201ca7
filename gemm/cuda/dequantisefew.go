package cuda

import (
	_ "embed"
	"encoding/binary"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
)

//go:embed kernels/dequantisefew.cu
var dequantiseFewSource string

// Sizes that must match kernels/dequantisefew.cu.
const (
	fewTokens     = gemm.FewTokens
	fewInputBytes = fewTokens * unitCols * 2
	fewSumBytes   = fewTokens * unitRows * 4
	fewRing       = 2 // units of a strip in a warp's ring buffer
	fewStrips     = 8 // largest number of strips in a block; their sums are in registers

	sharedBytes = 228 << 10                 // shared memory of a Hopper multiprocessor
	sharedTaken = 1 << 10                   // shared memory that the driver takes for each block
	mostShared  = sharedBytes - sharedTaken // largest shared memory of a block
)

// fewBlock is the configuration of a block of dequantise_few. blocks is the number of blocks on a multiprocessor at the
// same time.
type fewBlock struct{ strips, warps, blocks, cluster int }

// few returns the kernel for a product of at most fewTokens tokens.
func (d *Device) few(p gemm.Problem, f format) dequantiser {
	b := divideFew(p, f, d.info.SMs)
	return dequantiser{
		name: "dequantise_few", sources: []string{dequantiseFewSource},
		defines: []string{
			fmt.Sprintf("UNITS=%d", p.K/unitCols), fmt.Sprintf("STRIPS=%d", b.strips), fmt.Sprintf("WARPS=%d", b.warps),
			fmt.Sprintf("BLOCKS=%d", b.blocks), fmt.Sprintf("CLUSTER=%d", b.cluster),
		},
		blocks: Grid{X: b.cluster, Y: ceil(p.N, b.strips*unitRows)}, threads: Grid{X: 32 * b.warps},
		shared: b.shared(p.K, f), splitK: b.cluster,
	}
}

// shared returns the shared memory of a block in bytes.
func (b fewBlock) shared(k int, f format) int {
	align := func(bytes int) int { return ceil(bytes, 128) * 128 }
	sides, groups := f.groupBytes(), 0
	if f.group == 0 || f.group >= unitCols { // the scales are copied once
		each := 1
		if f.group > 0 {
			each = k / f.group
		}
		if b.cluster > 1 && each > 1 {
			each = ceil(each, b.cluster) + 1
		}
		groups, sides = align(b.strips*each*sides), 0
	}
	stage := fewInputBytes + align(b.strips*(unitBytes+sides))
	return max(groups+b.warps*fewRing*stage, b.warps*b.strips*fewSumBytes)
}

// divideFew divides a product of few tokens into blocks that fit into a multiprocessor's shared memory. The
// multiprocessor with the most work determines the time. The constants were fitted to measurements of an H200:
// bench/results/h200/quantised/few.txt.
func divideFew(p gemm.Problem, f format, sms int) (best fewBlock) {
	const (
		inputs  = 0.5 // time for a unit of the tokens' inputs, relative to a unit of a strip
		cluster = 100 // time for the sum over a cluster
		wave    = 50  // time for the start and the end of a wave of blocks
	)
	least := 0.0
	for _, b := range []fewBlock{{warps: 16, blocks: 1}, {warps: 8, blocks: 2}} {
		for b.strips = min(fewStrips, ceil(p.N, tileRows)*tileRows/unitRows); b.strips >= 1; b.strips-- {
			for b.cluster = 1; b.cluster <= min(2, p.K/unitCols); b.cluster++ {
				if b.blocks*(b.shared(p.K, f)+sharedTaken) > sharedBytes {
					continue
				}
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

// takesFew reports whether dequantise_few supports a number of tokens and a matrix of codes.
func takesFew(tokens int, c *gemm.Codes) bool { return tokens <= fewTokens && fewExact(c) }

// fewExact reports whether dequantise_few is exact for these scales. The kernel multiplies scales by powers of two.
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
