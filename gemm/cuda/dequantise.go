package cuda

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

//go:embed kernels/dequantise.cu
var dequantiseSource string

// Sizes of kernels/dequantise.cu.
const (
	fewTokens = 16
	fewRing   = 256 // inputs
	fewWarps  = 8   // most of a block
	warpRows  = 32
	fewBlocks = 2 // on a multiprocessor at once

	manyTokens  = 256
	manyThreads = 384
	manyShared  = 6*manyTokens*128 + 2*6*8

	fp4Scale = 256 // of results
)

// format has the parameters that a dequantising kernel is compiled for.
type format struct {
	fp4, zeros bool
	group      int // 0: all columns
	scales     scaleFormat
	cluster    int // 0: many tokens
}

// scaleFormat is SCALE of kernels/dequantise.cu.
type scaleFormat int

const (
	bf16Scales scaleFormat = iota
	e4m3Scales
	e8m0Scales
	normalScales // E4M3 without subnormal numbers
)

func formatOf(c *gemm.Codes) format {
	f := format{fp4: c.FP4, zeros: c.Zeros != nil, group: c.Group}
	if c.Group == c.Cols && c.Group >= unitCols {
		f.group = 0
	}
	switch c.ScaleType {
	case weights.F8E8M0:
		f.scales = e8m0Scales
	case weights.F8E4M3:
		f.scales = normalScales
		if slices.ContainsFunc(c.Scales, func(s byte) bool { return s < 8 || s > 0x7e }) {
			f.scales = e4m3Scales
		}
	}
	return f
}

// dequantisers are the compiled kernels.
type dequantisers struct {
	mu       sync.Mutex
	compiled map[format]*Module
}

// dequantising is a product with a kernel that dequantises the weights.
type dequantising struct {
	function *Function
	format   format
	shape    shape
	packing  packing
	scale    float32 // of the result
	warps    int     // of a block, for few tokens
}

// dequantise prepares a product with four-bit codes of weights, perhaps stacked. It must not be called within Do.
func (d *Device) dequantise(ctx context.Context, p gemm.Problem, w gemm.Matrix) (*dequantising, error) {
	c := w.Codes
	q := &dequantising{format: formatOf(c), shape: shapeOf(p), packing: packingOf(c, p.N/c.Rows), scale: 1}
	wrong := func(format string, args ...any) (*dequantising, error) {
		return nil, fmt.Errorf("product %v with four-bit codes: %s", p, fmt.Sprintf(format, args...))
	}
	switch g := c.Group; {
	case d.info.capability != 90:
		return wrong("the dequantising kernel needs compute capability 9.0, and %s has %s", d.info.Name, d.info.Capability)
	case p.Type != arith.BF16 || p.Streaming:
		return wrong("the dequantising kernel multiplies BF16 with the weights as the A operand (stationary)")
	case p.K%unitCols != 0 || p.N%8 != 0:
		return wrong("the dequantising kernel needs inputs in multiples of %d and outputs in multiples of 8", unitCols)
	case g != 16 && g != 32 && g%64 != 0:
		return wrong("the dequantising kernel has groups of 16, 32 and multiples of 64, not of %d", g)
	case c.FP4 == (c.ScaleType == weights.BF16):
		return wrong("the dequantising kernel has BF16 scales for integers and scales of eight bits for FP4, not %s", c.ScaleType)
	case c.ScaleType == weights.F8E8M0 && slices.Max(c.Scales) > mostE8M0:
		return wrong("a scale is larger than 2^%d", mostE8M0-127)
	}
	if c.FP4 {
		q.scale = fp4Scale
	}
	if s := w.Scales; s != nil {
		if len(s.Values) != 1 {
			return wrong("%d scales beside those of the codes", len(s.Values))
		}
		q.scale *= s.Values[0]
	}
	name, shared := "dequantise_many", manyShared
	if p.M <= fewTokens {
		q.format.cluster, q.warps = d.divide(p)
		inputs := min(p.K, ceil(ceil(p.K, fewRing), q.format.cluster)*fewRing)
		name, shared = "dequantise_few", fewTokens*max(2*inputs+16, 4*(q.warps*warpRows+4))
	}
	m, err := d.dequantiser(ctx, q.format)
	if err != nil {
		return nil, err
	}
	q.function, err = m.Function(name, shared)
	return q, err
}

// mostE8M0 is the largest scale of FP4 codes whose product with 2^118 BF16 holds.
const mostE8M0 = 136

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

// dequantiser compiles the kernels of a format, or returns those compiled before.
func (d *Device) dequantiser(ctx context.Context, f format) (*Module, error) {
	d.dequantisers.mu.Lock()
	defer d.dequantisers.mu.Unlock()
	if m := d.dequantisers.compiled[f]; m != nil {
		return m, nil
	}
	truth := map[bool]int{true: 1}
	group := f.group
	if group == 0 {
		group = 1 << 30
	}
	m, err := d.Compile(ctx, "dequantise.cu", dequantiseSource,
		fmt.Sprintf("FP4=%d", truth[f.fp4]), fmt.Sprintf("ZEROS=%d", truth[f.zeros]), fmt.Sprintf("GROUP=%d", group),
		fmt.Sprintf("SCALE=%d", f.scales),
		fmt.Sprintf("CLUSTER=%d", f.cluster))
	if err != nil {
		return nil, err
	}
	if d.dequantisers.compiled == nil {
		d.dequantisers.compiled = map[format]*Module{}
	}
	d.dequantisers.compiled[f] = m
	return m, nil
}

func (q *dequantising) sizes() shape { return q.shape }

func (q *dequantising) destroy() {} // closing the device frees the kernels

// launch queues the product of packed weights at w.
func (q *dequantising) launch(p gemm.Problem, x, w, y uint64) error {
	blocks, threads := Grid{X: ceil(p.M, manyTokens), Y: ceil(p.N, tileRows)}, Grid{X: manyThreads}
	if q.format.cluster > 0 {
		blocks, threads = Grid{X: q.format.cluster, Y: ceil(p.N, q.warps*warpRows)}, Grid{X: 32 * q.warps}
	}
	at := Address(w)
	return q.function.Launch(blocks, threads, Address(y), Address(x), at, at.Plus(q.packing.scales), at.Plus(q.packing.zeros), p.M, p.N, p.K, q.scale)
}

// kernel describes the kernel.
func (q *dequantising) kernel() Kernel {
	return Kernel{
		Name: q.function.name, M: q.shape.m, N: q.shape.n, K: q.shape.k, SplitK: max(1, q.format.cluster),
		Compute: compute32F, TensorCores: true,
	}
}
