package cuda

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/weights"
)

// PTX is CUDA C++ source with wrappers of instructions, in namespace ptx. It must precede the source of kernels that
// use this namespace.
//
//go:embed kernels/ptx.cu
var PTX string

//go:embed kernels/dequantise.cu
var dequantiseSource string

const fp4Scale = 256 // factor of the results of FP4 weights in kernels/dequantise.cu

// format holds the parameters for which all dequantising kernels are compiled.
type format struct {
	fp4, zeros bool
	group      int // columns per group; 0: all columns
	scales     scaleFormat
}

// scaleFormat is the value of the macro SCALE in kernels/dequantise.cu.
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

// groupBytes returns the size of the scales and zero points of a unit.
func (f format) groupBytes() int {
	bytes := 1
	if f.scales == bf16Scales {
		bytes = 2
	}
	if f.zeros {
		bytes++
	}
	if f.group > 0 && f.group < unitCols {
		bytes *= unitCols / f.group
	}
	return unitRows * bytes
}

// defines returns the macros for kernels/dequantise.cu.
func (f format) defines() []string {
	truth := map[bool]int{true: 1}
	group := f.group
	if group == 0 {
		group = 1 << 30
	}
	return []string{
		fmt.Sprintf("FP4=%d", truth[f.fp4]), fmt.Sprintf("ZEROS=%d", truth[f.zeros]), fmt.Sprintf("GROUP=%d", group), fmt.Sprintf("SCALE=%d", f.scales),
	}
}

// dequantiser is a kernel that dequantises weights, with its launch configuration for a product.
type dequantiser struct {
	name            string
	sources         []string // source files that follow kernels/dequantise.cu
	defines         []string // macros in addition to the format's
	blocks, threads Grid
	shared          int // shared memory of a block in bytes
	splitK          int
}

// dequantisers holds the compiled kernels of a device.
type dequantisers struct {
	mu       sync.Mutex
	compiled map[string]*Module // by name and macros
}

// dequantising is a product whose kernel dequantises the weights.
type dequantising struct {
	dequantiser
	function *Function
	shape    shape
	packing  packing
	scale    float32 // factor of the result
}

// dequantise prepares a product with four-bit codes of weights, which may be stacked. For both roles, operands and
// result have the layout of a stationary product. It must not be called within Do.
func (d *Device) dequantise(ctx context.Context, p gemm.Problem, w gemm.Matrix) (*dequantising, error) {
	c := w.Codes
	lies := p
	lies.Streaming = false
	q := &dequantising{shape: shapeOf(lies), packing: packingOf(c, p.N/c.Rows), scale: 1}
	wrong := func(format string, args ...any) (*dequantising, error) {
		return nil, fmt.Errorf("product %v with four-bit codes: %s", p, fmt.Sprintf(format, args...))
	}
	switch g := c.Group; {
	case d.info.capability != 90:
		return wrong("the dequantising kernel needs compute capability 9.0, and %s has %s", d.info.Name, d.info.Capability)
	case p.Type != arith.BF16:
		return wrong("the dequantising kernel multiplies only in BF16")
	case p.Streaming && p.M <= fewTokens:
		return wrong("with at most %d tokens, the dequantising kernel only takes the weights as the A operand (stationary)", fewTokens)
	case p.K%unitCols != 0 || p.N%8 != 0:
		return wrong("the dequantising kernel needs a number of inputs divisible by %d and a number of outputs divisible by 8", unitCols)
	case g != 16 && g != 32 && g%64 != 0:
		return wrong("the dequantising kernel supports groups of 16, of 32 and of multiples of 64, but not of %d", g)
	case c.FP4 == (c.ScaleType == weights.BF16):
		return wrong("the dequantising kernel supports BF16 scales for integers and eight-bit scales for FP4, but not %s", c.ScaleType)
	case tooLarge(c):
		return wrong("a scale is larger than 2^%d", mostE8M0-127)
	}
	if c.FP4 {
		q.scale = fp4Scale
	}
	if s := w.Scales; s != nil {
		if len(s.Values) != 1 {
			return wrong("the matrix has %d scales in addition to the scales of its codes: give at most one", len(s.Values))
		}
		q.scale *= s.Values[0]
	}
	switch {
	case takesFew(p.M, c):
		q.dequantiser = d.few(p, formatOf(c))
	case p.Streaming:
		q.dequantiser = streaming(p)
	default:
		q.dequantiser = stationary(p)
	}
	m, err := d.compileDequantiser(ctx, formatOf(c), q.dequantiser)
	if err != nil {
		return nil, err
	}
	q.function, err = m.Function(q.name, q.shared)
	return q, err
}

// mostE8M0 is the largest E8M0 scale of FP4 codes for which the scale times 2^118 is a BF16 value.
const mostE8M0 = 136

// tooLarge reports whether any scale is larger than mostE8M0.
func tooLarge(c *gemm.Codes) bool {
	return c.ScaleType == weights.F8E8M0 && slices.Max(c.Scales) > mostE8M0
}

// compileDequantiser compiles a kernel for a format. It returns an earlier compiled kernel for the same format if there
// is one.
func (d *Device) compileDequantiser(ctx context.Context, f format, k dequantiser) (*Module, error) {
	d.dequantisers.mu.Lock()
	defer d.dequantisers.mu.Unlock()
	defines := append(f.defines(), k.defines...)
	key := fmt.Sprint(k.name, defines)
	if m := d.dequantisers.compiled[key]; m != nil {
		return m, nil
	}
	m, err := d.Compile(ctx, k.name+".cu", PTX+dequantiseSource+strings.Join(k.sources, ""), defines...)
	if err != nil {
		return nil, err
	}
	if d.dequantisers.compiled == nil {
		d.dequantisers.compiled = map[string]*Module{}
	}
	d.dequantisers.compiled[key] = m
	return m, nil
}

func (q *dequantising) sizes() shape { return q.shape }

func (q *dequantising) destroy() {} // closing the device frees the kernels

// launch queues the product with packed weights at address w.
func (q *dequantising) launch(p gemm.Problem, x, w, y uint64) error {
	at := Address(w)
	return q.function.Launch(q.blocks, q.threads, Address(y), Address(x), at, at.Plus(q.packing.scales), at.Plus(q.packing.zeros), p.M, p.N, p.K, q.scale)
}

// kernel describes the kernel.
func (q *dequantising) kernel() Kernel {
	return Kernel{
		Name: q.name, M: q.shape.m, N: q.shape.n, K: q.shape.k, SplitK: q.splitK,
		Compute: compute32F, TensorCores: true,
	}
}
