package cuda

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
)

// layer is a product with its operands on the card.
type layer struct {
	Product
	problem gemm.Problem // with stacked weights; never streaming if it has codes
	scales  *gemm.Scales // scales of the stacked weights
	product multiplier
	kernel  Kernel
	x, y    uint64   // all layers share y, and layers with the same operand share x
	w       []uint64 // one address per copy
}

// newLayers validates all products before the first upload, and compiles the kernels for products with codes.
func (d *Device) newLayers(ctx context.Context, products []Product, stack int) ([]*layer, error) {
	var layers []*layer
	seen := map[memoryOf]bool{}
	for _, p := range products {
		stacked := p.Problem
		stacked.N *= stack
		if err := first(ctx.Err, func() error { return p.validate(seen) }, stacked.Validate); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if p.W.Codes == nil && p.Problem.Type != arith.FP8 {
			p.W.Scales = nil // in the runtimes, a kernel applies these scales to the results
		}
		l := &layer{Product: p, problem: stacked}
		var err error
		if p.W.Codes != nil {
			l.product, err = d.dequantise(ctx, stacked, p.W)
			l.problem.Streaming = false // the memory layout is always stationary
		} else {
			l.scales, err = stackScales(p.W.Scales, p.Problem.N, stack)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// Validate returns an error if the operands' shapes or types differ from the problem's. Operands that are not finite
// are a [gemm.ErrNotFinite] that names x or w.
func (p Product) Validate() error { return p.validate(map[memoryOf]bool{}) }

// validate is Validate, but checks an x that several products share only once.
func (p Product) validate(seen map[memoryOf]bool) error {
	if err := p.Problem.Fits(p.X, p.W); err != nil {
		return err
	}
	if x := memory(p.X); !seen[x] {
		seen[x] = true
		if err := p.X.Finite(); err != nil {
			return fmt.Errorf("x is %w", err)
		}
	}
	if err := p.W.Finite(); err != nil {
		return fmt.Errorf("w is %w", err)
	}
	return nil
}

// memoryOf identifies an operand by its address and shape.
type memoryOf struct {
	data       *byte
	rows, cols int
}

func memory(m gemm.Matrix) memoryOf { return memoryOf{&m.Data[0], m.Rows, m.Cols} }

// layers prepares every product, uploads its operands, and allocates one y for the results of all products. When ctx
// ends, it stops before the next product.
func (a *arena) layers(ctx context.Context, layers []*layer, copies, stack int) error {
	d := a.device
	shared := map[memoryOf]uint64{} // layers with the same input share its x
	size := 0
	for _, l := range layers {
		err := first(
			ctx.Err,
			func() error { return l.prepare(d) },
			func() error { return a.operands(l, copies, stack, shared) },
			func() error { return a.scales(l) },
		)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		size = max(size, l.product.sizes().outputBytes(l.problem.Type))
	}
	if size == 0 {
		return nil
	}
	y, err := a.alloc(size)
	for _, l := range layers {
		l.y = y
	}
	return err
}

// prepare selects cuBLASLt's kernel. A dequantising kernel is already selected.
func (l *layer) prepare(d *Device) error {
	if q, ok := l.product.(*dequantising); ok {
		l.kernel = q.kernel()
		return nil
	}
	w, x, err := scalingsOf(l.problem, l.scales)
	if err != nil {
		return err
	}
	m, err := d.prepare(l.problem, scales{w: w, x: x})
	if err != nil {
		return err
	}
	l.product, l.kernel = m, d.api.kernel(m.shape, m.mode.compute, &m.choice)
	return nil
}

// scales uploads the scales of FP8 operands.
func (a *arena) scales(l *layer) error {
	m, ok := l.product.(*matmul)
	if !ok || l.scales == nil {
		return nil
	}
	for i, data := range l.scaleData() {
		at, err := a.alloc(len(data))
		if err == nil {
			err = a.device.upload(at, data)
		}
		if err != nil {
			return err
		}
		m.scales.at[i] = at
	}
	return m.scale(l.problem)
}

// scaleData returns the scales of w and x in the library's layout.
func (l *layer) scaleData() [2][]byte {
	m := l.product.(*matmul)
	x, w := m.shape.rowsOf(l.problem)
	return [2][]byte{scaleValues(m.scales.w, l.scales, w, m.shape.k), scaleValues(m.scales.x, nil, x, m.shape.k)}
}

func (a *arena) operands(l *layer, copies, stack int, shared map[memoryOf]uint64) (err error) {
	s := l.product.sizes()
	xRows, wRows := s.rowsOf(l.problem)
	key := memory(l.X)
	if at, ok := shared[key]; ok {
		l.x = at
	} else if l.x, err = a.operand(l.X, xRows, s.k); err != nil {
		return err
	}
	shared[key] = l.x
	var w uint64
	bytes := wRows * s.k * l.W.DType.Bits() / 8
	if l.W.Codes != nil {
		data := pack(l.W.Codes, stack)
		bytes = len(data)
		if w, err = a.alloc(bytes); err == nil {
			err = a.device.upload(w, data)
		}
	} else {
		w, err = a.stacked(l.W, stack, wRows, s.k)
	}
	if err != nil {
		return err
	}
	l.w = append(l.w, w)
	for range copies - 1 {
		c, err := a.alloc(bytes)
		if err != nil {
			return err
		}
		if err := a.device.duplicate(c, w, bytes); err != nil {
			return err
		}
		l.w = append(l.w, c)
	}
	return nil
}

// launch queues the product once, with the given copy of the weights.
func (l *layer) launch(copy int) error {
	if err := l.product.launch(l.problem, l.x, l.w[copy], l.y); err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	return nil
}

// destroy frees the descriptors. Any thread may free them, because they are host memory.
func (l *layer) destroy() {
	if l.product != nil {
		l.product.destroy()
	}
}
