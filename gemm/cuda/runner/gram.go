package runner

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
)

//go:embed kernels/gram.cu
var gramSource string

// Gram is the Gram matrix XᵀX/Tokens of an input of linear layers, and the input's range.
type Gram struct {
	// Layers are the names of the weights of all layers that read the input, in the order of decoder.Layers.
	Layers        []string
	Width, Tokens int
	Low, High     float32 // smallest and largest element
	// Triangle is the upper triangle of XᵀX/Tokens, row by row without gaps.
	Triangle []float32
}

// gramKernels are the kernels of calibration statistics.
type gramKernels struct {
	module              *cuda.Module
	add, pack, extremes *cuda.Function
}

// names returns the names of the weights whose layers read an input.
func names(in decoder.Input) (all []string) {
	for _, l := range in.Layers {
		all = append(all, l.Weight)
	}
	return all
}

// gramKernels returns the kernels. It compiles them on the first call for a model.
func (m *Model) gramKernels(ctx context.Context) (*gramKernels, error) {
	if m.kernels == nil {
		return nil, errClosed
	}
	if m.gram != nil {
		return m.gram, nil
	}
	module, err := m.device.Compile(ctx, "gram.cu", elementSource+gramSource)
	if err != nil {
		return nil, err
	}
	k := &gramKernels{module: module}
	for _, f := range []struct {
		to   **cuda.Function
		name string
	}{{&k.add, "gram_add"}, {&k.pack, "gram_pack"}, {&k.extremes, "gram_range"}} {
		if *f.to, err = module.Function(f.name, 0); err != nil {
			return nil, errors.Join(err, module.Close())
		}
	}
	m.gram = k
	return k, nil
}

// grams sums XᵀX of some inputs. The products of a batch are in float32, without TF32. The products of the batches are
// added in float64, in order.
type grams struct {
	*gramKernels
	memory *cuda.Memory
	sums   map[string]*gramSum // by the first layer that reads the input
}

// gramSum is the sum over all batches so far.
type gramSum struct {
	width         int
	sum, extremes cuda.Address
	tokens        int
}

// gramStripe is the number of rows of XᵀX that one product computes.
const gramStripe = 1024

// sumBytes returns the memory for an input's sums (8 bytes per element) and for one batch's product (4 bytes per
// element).
func sumBytes(width int) int64 { return 12 * int64(width) * int64(width) }

// newGrams allocates the sums of inputs and sets them to 0. It must be called within Device.Do.
func (m *Model) newGrams(k *gramKernels, inputs []decoder.Input) (*grams, error) {
	g := &grams{k, m.device.NewMemory(), map[string]*gramSum{}}
	for _, in := range inputs {
		name, width := in.Layers[0].Weight, in.Layers[0].Inputs
		s := &gramSum{width: width}
		for _, of := range []struct {
			to    *cuda.Address
			bytes int
		}{{&s.sum, 8 * width * width}, {&s.extremes, 8}} {
			at, err := g.memory.Alloc(of.bytes)
			if err == nil {
				err = m.device.Clear(at, of.bytes)
			}
			if err != nil {
				_ = g.memory.Free() // the first error is returned
				return nil, fmt.Errorf("tensor %q: collect statistics of its %d inputs: %w", name, width, err)
			}
			*of.to = at
		}
		g.sums[name] = s
	}
	return g, nil
}

// observe queues the addition of a layer's inputs x[rows, inputs] to the sums, if the statistics of this input are
// wanted.
func (g *grams) observe(p *pass, l *linear, x cuda.Address, rows, stride int) error {
	if g == nil {
		return nil
	}
	s := g.sums[l.layers[0].Weight]
	if s == nil {
		return nil
	}
	if p.act != cuda.FP32 || stride != s.width {
		return fmt.Errorf("tensor %q: statistics need float32 inputs without gaps between rows: set Options.Exact", l.layers[0].Weight)
	}
	product, err := p.buffer("gram", 4*s.width*s.width)
	if err != nil {
		return err
	}
	for from := 0; from < s.width; from += gramStripe { // only columns of the upper triangle
		shape := cuda.LinearShape{M: min(gramStripe, s.width-from), N: s.width - from, K: rows, In: cuda.FP32, Out: cuda.FP32,
			Transposed: true, TransposedX: true, StrideX: s.width, StrideW: s.width, StrideY: s.width}
		part := x.Plus(4 * from)
		if err := p.multiply(shape, product.Plus(4*from*(s.width+1)), part, part, false); err != nil {
			return p.layerError(l, err)
		}
	}
	s.tokens += rows
	blocks := cuda.Grid{X: min(s.width, 132*16)}
	if err := g.add.Launch(blocks, cuda.Grid{X: threads}, s.sum, product, s.width); err != nil {
		return err
	}
	return g.extremes.Launch(flat(rows*s.width), cuda.Grid{X: threads}, s.extremes, x, rows, s.width)
}

// of downloads an input's statistics; nil if no token reached the input.
func (g *grams) of(p *pass, in decoder.Input) (*Gram, error) {
	s := g.sums[in.Layers[0].Weight]
	if s.tokens == 0 {
		return nil, nil
	}
	n := s.width * (s.width + 1) / 2
	packed, err := p.buffer("gram", 4*n) // the products no longer use this buffer
	if err != nil {
		return nil, err
	}
	if err := g.pack.Launch(cuda.Grid{X: min(s.width, 132*16)}, cuda.Grid{X: threads}, packed, s.sum, s.width, float64(s.tokens)); err != nil {
		return nil, err
	}
	var extremes [8]byte
	if err := p.device.Download(extremes[:], s.extremes); err != nil {
		return nil, err
	}
	out := &Gram{Layers: names(in), Width: s.width, Tokens: s.tokens, Triangle: make([]float32, n),
		Low:  unordered(^binary.LittleEndian.Uint32(extremes[:])),
		High: unordered(binary.LittleEndian.Uint32(extremes[4:]))}
	return out, downloadFloats(p.device, out.Triangle, packed)
}

// unordered is the inverse of the kernel's function ordered.
func unordered(u uint32) float32 {
	if u&(1<<31) == 0 {
		return math.Float32frombits(^u)
	}
	return math.Float32frombits(u &^ (1 << 31))
}

// downloadFloats copies numbers from the card. It must be called within Device.Do.
func downloadFloats(d *cuda.Device, to []float32, from cuda.Address) error {
	const piece = 1 << 22
	data := make([]byte, 4*min(piece, len(to)))
	for len(to) > 0 {
		part := data[:4*min(piece, len(to))]
		if err := d.Download(part, from); err != nil {
			return err
		}
		for i := range len(part) / 4 {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:]))
		}
		to, from = to[len(part)/4:], from.Plus(len(part))
	}
	return nil
}
