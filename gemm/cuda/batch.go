package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm"
)

// Product is one product of a batch, such as a linear layer of a model. The memory of its operands must stay valid
// until the batch is closed.
type Product struct {
	Name    string
	Problem gemm.Problem
	X, W    gemm.Matrix // operands with the same data are uploaded once, as x
}

// Options are the options of [Device.NewBatch] and [Device.NewMix].
type Options struct {
	// Repeat is the number of passes through all products and traffic in one replay. With Cold, it is the number of
	// passes through all copies of the weights. Default: the smallest power of two for which a replay takes 5 ms on
	// this card. Because the default depends on a measured time, two batches of the same products may differ by a
	// factor of two.
	Repeat int
	// Cold makes every product read its weights from memory, as in decode. Replays then use several copies of all
	// weights in turn. The copies take more than four times the size of the L2 cache, but need at most 4096 launches.
	// Default: false.
	Cold bool
	// ColdBytes is a total size of stacked weights in bytes. With Cold, the number of copies is computed from ColdBytes
	// if it is smaller than the batch's own weights. Batches to be compared need the same ColdBytes. Default: the
	// batch's own size.
	ColdBytes int
	// Stack is the number of copies of a product's weights that one launch multiplies, stacked along N. With stacking,
	// small layers use the memory's bandwidth as well as large layers do. Default: 1.
	Stack int
}

// Batch replays products, traffic or both on a card, back to back. A device runs one batch or sequence at a time. A
// batch's methods must be called from one goroutine.
type Batch struct {
	Graph
	layers []*layer
	work   []launcher // work of one pass, in order
	stack  int        // copies of a layer's weights in one product
	copies int        // number of copies of all weights
	passes int        // passes through all work in one replay

	memory *arena
	pace   pacer
}

// launcher is a piece of work that a pass queues on the device's stream.
type launcher interface {
	// launch queues the work once, with the given copy of the weights. It must be called on the device's thread.
	launch(copy int) error
}

// NewBatch uploads the products' operands, selects their kernels and captures their graph. If an operand contains NaN
// or infinity, it returns a [gemm.ErrNotFinite] with the operand's name. Close frees the memory. When ctx ends,
// NewBatch stops before the next product.
func (d *Device) NewBatch(ctx context.Context, name string, products []Product, o Options) (*Batch, error) {
	if len(products) == 0 {
		return nil, fmt.Errorf("batch %s: give at least one product", name)
	}
	return d.NewMix(ctx, name, products, nil, o)
}

// NewMix is [Device.NewBatch] for products and traffic: one pass runs all products and then all traffic. Either list
// may be empty. Options.Cold and Options.Stack do not apply to traffic. Traffic is not counted in the batch's
// operations or weights.
func (d *Device) NewMix(ctx context.Context, name string, products []Product, traffic []Traffic, o Options) (*Batch, error) {
	b := &Batch{Graph: Graph{device: d, name: name, kind: "batch"}, stack: max(1, o.Stack), memory: &arena{device: d}}
	transfers, err := d.newTransfers(ctx, traffic)
	if err == nil {
		b.layers, err = d.newLayers(ctx, products, b.stack)
	}
	if err == nil && len(products)+len(traffic) == 0 {
		err = errors.New("give at least one product or traffic pattern")
	}
	if err != nil {
		return nil, fmt.Errorf("batch %s: %w", name, err)
	}
	for _, l := range b.layers {
		b.work = append(b.work, l)
	}
	for _, t := range transfers {
		b.work = append(b.work, t)
	}
	b.copies = 1
	if o.Cold && len(products) > 0 {
		b.copies = b.coldCopies(o.ColdBytes)
	}
	if err := d.thread.do(func() error { return b.setUp(ctx, transfers, o.Repeat) }); err != nil {
		return nil, errors.Join(fmt.Errorf("batch %s: %w", name, err), b.Close())
	}
	return b, nil
}

func (b *Batch) setUp(ctx context.Context, transfers []*transfer, repeat int) error {
	return first(
		func() error { return b.memory.layers(ctx, b.layers, b.copies, b.stack) },
		func() error { return b.memory.transfers(ctx, transfers) },
		b.createEvents, b.warmUp,
		func() error { return b.record(repeat) },
	)
}

// pass launches all work once, with the given copy of the weights.
func (b *Batch) pass(copy int) error {
	for _, t := range b.work {
		if err := t.launch(copy); err != nil {
			return err
		}
	}
	return nil
}

// warmUp runs all work once, which loads the kernels.
func (b *Batch) warmUp() error {
	if err := b.pass(0); err != nil {
		return err
	}
	return b.device.sync()
}

// Close ends a running batch and frees its memory. It is idempotent.
func (b *Batch) Close() error {
	b.run.end()
	for _, l := range b.layers {
		l.destroy()
	}
	return b.device.release(b.tearDown)
}

func (b *Batch) tearDown() error {
	return errors.Join(b.memory.free(), b.pace.free(b.device), b.destroy())
}
