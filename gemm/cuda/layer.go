package cuda

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// layer is a product on the card.
type layer struct {
	Product
	problem gemm.Problem // of the stacked weights
	matmul  *matmul
	kernel  Kernel
	x, y    uint64   // y is shared by all layers, x by those with the same operand
	w       []uint64 // one address per copy
}

// newLayers validates all products before any upload.
func newLayers(ctx context.Context, products []Product, stack int) ([]*layer, error) {
	var layers []*layer
	seen := map[memoryOf]bool{}
	for _, p := range products {
		stacked := p.Problem
		stacked.N *= stack
		if err := first(ctx.Err, func() error { return p.validate(seen) }, stacked.Validate); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		layers = append(layers, &layer{Product: p, problem: stacked})
	}
	return layers, nil
}

// Validate returns an error if operands do not fit the problem or are not finite (a [gemm.ErrNotFinite] that
// names x or w).
func (p Product) Validate() error { return p.validate(map[memoryOf]bool{}) }

// validate checks an x that several products share only once.
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

// layers prepares every product, uploads its operands, and allocates one y for the results of all. When ctx
// ends it stops between two products.
func (a *arena) layers(ctx context.Context, layers []*layer, copies, stack int) error {
	d := a.device
	shared := map[memoryOf]uint64{} // layers that read one activation share its x
	size := 0
	for _, l := range layers {
		err := first(
			ctx.Err,
			func() (err error) { l.matmul, err = d.prepare(l.problem); return err },
			func() error { return a.operands(l, copies, stack, shared) },
		)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		l.kernel = d.api.kernel(l.matmul.shape, l.matmul.mode.compute, &l.matmul.choice)
		size = max(size, l.matmul.shape.outputBytes(l.problem.Type))
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

func (a *arena) operands(l *layer, copies, stack int, shared map[memoryOf]uint64) (err error) {
	s := l.matmul.shape
	xRows, wRows := s.rowsOf(l.problem)
	key := memory(l.X)
	if at, ok := shared[key]; ok {
		l.x = at
	} else if l.x, err = a.operand(l.X, xRows, s.k); err != nil {
		return err
	}
	shared[key] = l.x
	w, err := a.stacked(l.W, stack, wRows, s.k)
	if err != nil {
		return err
	}
	l.w = append(l.w, w)
	bytes := wRows * s.k * l.W.DType.Bits() / 8
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
	if err := l.matmul.launch(l.problem, l.x, l.w[copy], l.y); err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	return nil
}

// destroy frees the descriptors. They are host memory of the library: any thread may free them.
func (l *layer) destroy() {
	if l.matmul != nil {
		l.matmul.destroy()
	}
}
