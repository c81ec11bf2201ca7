package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Segment is a part of a launch sequence: a number of executions of one product or traffic pattern.
type Segment struct {
	Product    int // index into the sequence's products, followed by its traffic
	Executions int
}

// Stamp is the time at which Done executions of a segment had ended. The first stamp of a sequence has Done 0 and is
// the start on the card.
type Stamp struct {
	Segment, Done int
	At            time.Duration // time since the device was opened; see [Device.ReadClock]
}

// Sequence is a launch sequence. It runs segments in order and records times in the card's own clock. In each segment
// it records the ends of the first 16 executions, then about one end per millisecond, and the last end. A device runs
// one batch or sequence at a time. A sequence's methods must be called from one goroutine.
type Sequence struct {
	device *Device
	name   string
	layers []*layer
	graphs []productGraphs // one for each layer, followed by one for each traffic pattern
	memory *arena

	run  *run
	last *sequenceRun // state of the last Start
}

// productGraphs are the two graphs of a product or traffic pattern: of one execution, and of the executions between two
// stamps.
type productGraphs struct {
	one, many uintptr // the same graph if group is 1
	group     int     // number of executions in many
	once      time.Duration
}

// stampEvery is the time between two stamps after the first executions of a segment.
const stampEvery = time.Millisecond

// NewSequence uploads the products' operands, selects their kernels, captures graphs of products and traffic and
// measures their durations. The measurement takes some milliseconds per product, or some tens of milliseconds on an
// idle card. Errors are those of [Device.NewMix]. Close frees the memory. When ctx ends, NewSequence stops before the
// next product.
func (d *Device) NewSequence(ctx context.Context, name string, products []Product, traffic []Traffic) (*Sequence, error) {
	t := &Sequence{device: d, name: name, memory: &arena{device: d}}
	transfers, err := d.newTransfers(ctx, traffic)
	if err == nil {
		t.layers, err = d.newLayers(ctx, products, 1)
	}
	if err == nil && len(products)+len(traffic) == 0 {
		err = errors.New("give at least one product or traffic pattern")
	}
	if err != nil {
		return nil, fmt.Errorf("sequence %s: %w", name, err)
	}
	if err := d.thread.do(func() error { return t.setUp(ctx, transfers) }); err != nil {
		return nil, errors.Join(fmt.Errorf("sequence %s: %w", name, err), t.Close())
	}
	return t, nil
}

func (t *Sequence) setUp(ctx context.Context, transfers []*transfer) error {
	if err := first(
		func() error { return t.memory.layers(ctx, t.layers, 1, 1) },
		func() error { return t.memory.transfers(ctx, transfers) },
	); err != nil {
		return err
	}
	for _, l := range t.layers {
		if err := t.build(ctx, l.Name, l); err != nil {
			return err
		}
	}
	for _, f := range transfers {
		if err := t.build(ctx, f.Name, f); err != nil {
			return err
		}
	}
	return nil
}

// build appends the graphs of the next product or traffic pattern.
func (t *Sequence) build(ctx context.Context, name string, l launcher) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.graphs = append(t.graphs, productGraphs{})
	if err := t.graphs[len(t.graphs)-1].build(t.device, l); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// build captures the graphs. The work runs once before, which loads its kernel.
func (g *productGraphs) build(d *Device, l launcher) (err error) {
	executions := func(n int) func() error {
		return func() error {
			for range n {
				if err := l.launch(0); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if err := first(
		executions(1),
		d.sync,
		func() (err error) { g.one, err = d.capture(executions(1)); return err },
		func() error { return g.time(d) },
	); err != nil {
		return err
	}
	g.group = max(1, min(int(stampEvery/max(g.once, 1)), maxLaunches))
	if g.many = g.one; g.group == 1 {
		return nil
	}
	many := func() error { // the host cannot launch short kernels as fast as a graph runs them
		took, err := d.took(g.many, 1)
		g.once = min(g.once, took/time.Duration(g.group))
		return err
	}
	return first(
		func() (err error) { g.many, err = d.capture(executions(g.group)); return err },
		func() error { return d.replay(g.many, 1) }, // the first launch loads the graph onto the card
		many,
	)
}

// time measures the duration of an execution, which determines the length of queued pieces. After one execution to warm
// up, it repeats executions for some milliseconds until they no longer become faster, because the clock of an idle card
// first has to rise.
func (g *productGraphs) time(d *Device) (err error) {
	const long, tries, faster = 5 * time.Millisecond, 8, 0.9
	if g.once, err = d.took(g.one, 1); err != nil {
		return err
	}
	for range tries {
		before := g.once
		if g.once, err = d.took(g.one, max(1, min(int(long/max(before, 1)), maxLaunches))); err != nil {
			return err
		}
		if g.once.Seconds() > faster*before.Seconds() {
			break
		}
	}
	return nil
}

// Start queues the segments, back to back, and returns at once; see [Batch.Start]. Before the first stamp, the card
// fills memory for some tens of microseconds.
func (t *Sequence) Start(segments []Segment) error {
	if err := checkSegments(segments, len(t.graphs)); err != nil {
		return fmt.Errorf("sequence %s: %w", t.name, err)
	}
	c := &sequenceRun{device: t.device, segments: slices.Clone(segments), execute: t.execute}
	r, err := t.device.start("sequence "+t.name, c)
	if r != nil {
		t.run, t.last = r, c
	}
	return err
}

// checkSegments checks the segments of a sequence with the given number of products.
func checkSegments(segments []Segment, products int) error {
	if len(segments) == 0 {
		return errors.New("no segments")
	}
	for i, l := range segments {
		if l.Product < 0 || l.Product >= products || l.Executions < 1 {
			return fmt.Errorf("segment %d has %d executions of product %d: give at least one execution, and a product from 0 to %d",
				i, l.Executions, l.Product, products-1)
		}
	}
	return nil
}

// Wait waits until all segments have run, and returns the card's error if there was one. If ctx ends first, the card
// stops as for [Batch.Wait].
func (t *Sequence) Wait(ctx context.Context) error {
	if t.run == nil {
		return fmt.Errorf("sequence %s: call Start before Wait", t.name)
	}
	return t.run.wait(ctx)
}

// Stamps returns the stamps of the last Start, in time order. It returns an error if not all segments have run.
func (t *Sequence) Stamps() ([]Stamp, error) {
	switch {
	case t.run == nil || !t.run.over():
		return nil, fmt.Errorf("sequence %s: the segments have not ended: call Start and Wait first", t.name)
	case t.run.err != nil:
		return nil, t.run.err
	}
	return slices.Clone(t.last.stamps), nil
}

// Close ends a running sequence and frees its memory. It is idempotent.
func (t *Sequence) Close() error {
	t.run.end()
	for _, l := range t.layers {
		l.destroy()
	}
	return t.device.release(func() error {
		errs := []error{t.memory.free()}
		for i := range t.graphs {
			errs = append(errs, t.graphs[i].destroy(t.device))
		}
		t.graphs = nil
		return errors.Join(errs...)
	})
}

func (g *productGraphs) destroy(d *Device) error {
	if g.many == g.one {
		g.many = 0
	}
	return errors.Join(d.destroyGraph(&g.one), d.destroyGraph(&g.many))
}
