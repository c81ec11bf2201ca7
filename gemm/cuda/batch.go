package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// Product is one product of a batch, as one linear layer of a model. Its operands must keep their
// memory until the batch is closed.
type Product struct {
	Name    string
	Problem gemm.Problem
	X, W    gemm.Matrix // operands that share their data are uploaded once, as x
}

// Options say how a batch is replayed.
type Options struct {
	// Repeat is how often one replay goes through the products (through all copies of their weights,
	// where Cold). Default: so often that a replay takes some 5 ms on an H200, a number that depends
	// on the shapes alone.
	Repeat int
	// Cold keeps as many copies of all weights as it takes to exceed four times the L2 cache, at most
	// what fits 4096 launches, and uses them in turn: every product then reads its weights from
	// memory, as decoding does. Default: false.
	Cold bool
	// Stack puts so many copies of a product's weights one below the other and multiplies by all at
	// once: small layers then load the memory as large ones do. Default: 1.
	Stack int
}

// Batch replays many products on a card, back to back. One batch runs at a time; the methods of one
// are for one goroutine.
type Batch struct {
	device *Device
	name   string
	layers []layer
	stack  int // copies of a layer's weights in one product
	copies int // of all weights
	passes int // through all layers, in one replay

	memory *arena
	y      uint64 // all results, one after the other
	exec   uintptr
	begin  uintptr
	end    uintptr
	marks  [ahead]uintptr
	replay time.Duration // of one replay, warm

	run *run
}

// layer is a product on the card.
type layer struct {
	Product
	problem gemm.Problem // of the stacked weights
	matmul  *matmul
	kernel  Kernel
	x       uint64
	w       []uint64 // one address per copy
}

// NewBatch uploads the products' operands, chooses their kernels and captures their graph. NaNs and
// infinities in an operand are a [gemm.ErrNotFinite] that names it. Close gives the memory back.
// When ctx ends it stops between two products.
func (d *Device) NewBatch(ctx context.Context, name string, products []Product, o Options) (*Batch, error) {
	if len(products) == 0 {
		return nil, fmt.Errorf("batch %s: no products", name)
	}
	b := &Batch{device: d, name: name, stack: max(1, o.Stack), memory: &arena{device: d}}
	seen := map[memoryOf]bool{}
	for _, p := range products {
		stacked := p.Problem
		stacked.N *= b.stack
		if err := first(ctx.Err, func() error { return p.validate(seen) }, stacked.Validate); err != nil {
			return nil, fmt.Errorf("batch %s: %s: %w", name, p.Name, err)
		}
		b.layers = append(b.layers, layer{Product: p, problem: stacked})
	}
	b.copies, b.passes = plan(products, o, d.info.L2)
	if err := d.thread.do(func() error { return b.setUp(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("batch %s: %w", name, err), b.Close())
	}
	return b, nil
}

// Validate reports operands that do not fit the problem, and those that are not finite (a
// [gemm.ErrNotFinite] that names x or w).
func (p Product) Validate() error { return p.validate(map[memoryOf]bool{}) }

// validate looks at an x that many products share but once.
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

func (b *Batch) setUp(ctx context.Context) error {
	return first(func() error { return b.upload(ctx) }, b.createEvents, b.warmUp, b.record, b.time)
}

// upload prepares every product and puts its operands on the card.
func (b *Batch) upload(ctx context.Context) (err error) {
	shared := map[memoryOf]uint64{} // layers that read one activation share its x
	size := 0
	for i := range b.layers {
		l := &b.layers[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.matmul, err = b.device.prepare(l.problem); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		l.kernel = b.device.api.kernel(l.matmul.shape, l.matmul.mode.compute, &l.matmul.choice)
		if err := b.operands(l, shared); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		size = max(size, l.matmul.shape.outputBytes(l.problem.Type))
	}
	b.y, err = b.memory.alloc(size)
	return err
}

// memoryOf tells operands apart: where they lie, and as which matrix.
type memoryOf struct {
	data       *byte
	rows, cols int
}

func memory(m gemm.Matrix) memoryOf { return memoryOf{&m.Data[0], m.Rows, m.Cols} }

func (b *Batch) operands(l *layer, shared map[memoryOf]uint64) (err error) {
	s := l.matmul.shape
	xRows, wRows := s.rowsOf(l.problem)
	key := memory(l.X)
	if at, ok := shared[key]; ok {
		l.x = at
	} else if l.x, err = b.memory.operand(l.X, xRows, s.k); err != nil {
		return err
	}
	shared[key] = l.x
	w, err := b.memory.stacked(l.W, b.stack, wRows, s.k)
	if err != nil {
		return err
	}
	l.w = append(l.w, w)
	bytes := wRows * s.k * l.W.DType.Bits() / 8
	for range b.copies - 1 {
		c, err := b.memory.alloc(bytes)
		if err != nil {
			return err
		}
		if err := b.device.duplicate(c, w, bytes); err != nil {
			return err
		}
		l.w = append(l.w, c)
	}
	return nil
}

func (b *Batch) createEvents() (err error) {
	for _, e := range []*uintptr{&b.begin, &b.end, &b.marks[0], &b.marks[1], &b.marks[2]} {
		if *e, err = b.device.event(); err != nil {
			return err
		}
	}
	return nil
}

// pass launches every product once, with the given copy of the weights.
func (b *Batch) pass(copy int) error {
	for i := range b.layers {
		l := &b.layers[i]
		if err := l.matmul.launch(l.problem, l.x, l.w[copy], b.y); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return nil
}

// warmUp runs everything once, which loads the kernels.
func (b *Batch) warmUp() error {
	if err := b.pass(0); err != nil {
		return err
	}
	return b.device.sync()
}

func (b *Batch) record() (err error) {
	b.exec, err = b.device.capture(func() error {
		for i := range b.passes {
			if err := b.pass(i % b.copies); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// time replays twice, the first time to warm up.
func (b *Batch) time() error {
	return first(
		func() error { return b.queue(1, b.begin) },
		func() error { return b.queue(1, b.end) },
		b.device.sync,
		func() (err error) { b.replay, err = b.between(b.begin, b.end); return err },
	)
}

// queue launches n replays and marks their end.
func (b *Batch) queue(n int, mark uintptr) error {
	a := b.device.api
	for range n {
		if err := a.check("cuGraphLaunch", a.cuGraphLaunch(b.exec, b.device.stream)); err != nil {
			return err
		}
	}
	return b.device.mark(mark)
}

// between is the time that the card took from one event to another; both must have happened.
func (b *Batch) between(from, to uintptr) (time.Duration, error) {
	var ms float32
	err := b.device.api.check("cuEventElapsedTime", b.device.api.cuEventElapsedTime(&ms, from, to))
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Close ends a running batch and gives its memory back; twice does nothing.
func (b *Batch) Close() error {
	if b.run != nil {
		b.run.cancel()
		<-b.run.done
	}
	for i := range b.layers { // descriptors are the library's host memory: any thread will do
		if m := b.layers[i].matmul; m != nil {
			m.destroy()
		}
	}
	err := b.device.thread.do(b.tearDown)
	if errors.Is(err, errClosed) { // the device took everything else with it
		return nil
	}
	return err
}

func (b *Batch) tearDown() error {
	a := b.device.api
	errs := []error{b.memory.free()}
	if b.exec != 0 {
		errs = append(errs, a.check("cuGraphExecDestroy", a.cuGraphExecDestroy(b.exec)))
		b.exec = 0
	}
	for _, e := range []*uintptr{&b.begin, &b.end, &b.marks[0], &b.marks[1], &b.marks[2]} {
		if *e != 0 {
			errs = append(errs, a.check("cuEventDestroy", a.cuEventDestroy(*e)))
			*e = 0
		}
	}
	return errors.Join(errs...)
}
