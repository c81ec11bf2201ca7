package cuda

import (
	"context"
	_ "embed"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

//go:embed kernels/dequantise.cu
var dequantiseSource string

// Sizes of kernels/dequantise.cu.
const (
	fewTokens  = 16
	fewRows    = 256
	fewThreads = 256
	fewSums    = 4 * fewTokens * 260 // bytes

	manyTokens  = 256
	manyThreads = 384
	manyShared  = 6*manyTokens*128 + 2*6*8
)

// format is what a dequantising kernel is compiled for.
type format struct {
	fp4, zeros bool
	group      int // 0: all columns
	scales     weights.DType
	cluster    int // 0: many tokens
}

func formatOf(c *gemm.Codes) format {
	f := format{fp4: c.FP4, zeros: c.Zeros != nil, group: c.Group, scales: c.ScaleType}
	if c.Group == c.Cols {
		f.group = 0
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
	}
	if s := w.Scales; s != nil {
		if len(s.Values) != 1 {
			return wrong("%d scales beside those of the codes", len(s.Values))
		}
		q.scale = s.Values[0]
	}
	name, shared := "dequantise_many", manyShared
	if p.M <= fewTokens {
		q.format.cluster = d.cluster(p)
		name, shared = "dequantise_few", fewSums+fewTokens*(2*q.share(p)+16)
	}
	m, err := d.dequantiser(ctx, q.format)
	if err != nil {
		return nil, err
	}
	q.function, err = m.Function(name, shared)
	return q, err
}

// cluster is the number of blocks that share the inputs: enough to fill the card twice.
func (d *Device) cluster(p gemm.Problem) int {
	n := 1
	for n < 8 && ceil(p.N, fewRows)*n < 2*d.info.SMs && p.K/unitCols >= 8*n {
		n *= 2
	}
	return n
}

// share is the largest number of inputs of a block of a cluster.
func (q *dequantising) share(p gemm.Problem) int {
	return ceil(p.K/unitCols, q.format.cluster) * unitCols
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
		fmt.Sprintf("SCALE=%d", map[weights.DType]int{weights.BF16: 0, weights.F8E4M3: 1, weights.F8E8M0: 2}[f.scales]),
		fmt.Sprintf("CLUSTER=%d", max(1, f.cluster)))
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
		blocks, threads = Grid{X: q.format.cluster, Y: ceil(p.N, fewRows)}, Grid{X: fewThreads}
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
