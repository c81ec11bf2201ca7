package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Leg is a stretch of a train: one product, over and over.
type Leg struct {
	Product    int // of those that the train was made of, from 0
	Executions int
}

// Stamp is a moment of a train by the card's clock: so many executions of a leg were done then. The
// first stamp of a train has none done, and is when the card began.
type Stamp struct {
	Leg, Done int
	At        time.Duration // since the device was opened; see [Device.ReadClock]
}

// Train runs products one after the other and notes when, by the card's own clock: the end of each
// of a leg's first 16 executions, of about every millisecond after them, and of the leg. One batch or
// train runs at a time; the methods of one are for one goroutine.
type Train struct {
	device *Device
	name   string
	layers []*layer
	cars   []car // one for each layer
	memory *arena

	run    *run
	course *course // of the last Start
}

// car is a product's graphs: of one execution, and of as many as lie between two stamps.
type car struct {
	one, many uintptr // the same where group is 1
	group     int     // executions of many
	once      time.Duration
}

// stampEvery is the time between two stamps, but at the beginning of a leg (see [course]).
const stampEvery = time.Millisecond

// NewTrain uploads the products' operands, chooses their kernels, runs each for some milliseconds (tens of
// them from an idle card) to see how long it takes, and captures their graphs. Errors are those of [Device.NewBatch]. Close gives
// the memory back. When ctx ends it stops between two products.
func (d *Device) NewTrain(ctx context.Context, name string, products []Product) (*Train, error) {
	t := &Train{device: d, name: name, memory: &arena{device: d}}
	if len(products) == 0 {
		return nil, fmt.Errorf("train %s: no products", name)
	}
	var err error
	if t.layers, err = newLayers(ctx, products, 1); err != nil {
		return nil, fmt.Errorf("train %s: %w", name, err)
	}
	if err := d.thread.do(func() error { return t.setUp(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("train %s: %w", name, err), t.Close())
	}
	return t, nil
}

func (t *Train) setUp(ctx context.Context) error {
	if err := t.memory.layers(ctx, t.layers, 1, 1); err != nil {
		return err
	}
	t.cars = make([]car, len(t.layers))
	for i, l := range t.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.cars[i].build(t.device, l); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return nil
}

// build captures a layer's graphs; the layer runs once before that, which loads its kernel.
func (c *car) build(d *Device, l *layer) (err error) {
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
		func() (err error) { c.one, err = d.capture(executions(1)); return err },
		func() error { return c.time(d) },
	); err != nil {
		return err
	}
	c.group = max(1, min(int(stampEvery/max(c.once, 1)), maxLaunches))
	if c.many = c.one; c.group == 1 {
		return nil
	}
	many := func() error { // short kernels run faster within a graph than the host can launch them
		took, err := d.took(c.many, 1)
		c.once = min(c.once, took/time.Duration(c.group))
		return err
	}
	return first(
		func() (err error) { c.many, err = d.capture(executions(c.group)); return err },
		func() error { return d.replay(c.many, 1) }, // the first launch brings the graph to the card
		many,
	)
}

// time finds how long an execution takes: from one, to warm up, and then from some milliseconds of them, for
// as long as they become faster: an idle card's clock has yet to rise. What is queued ahead rests on it.
func (c *car) time(d *Device) (err error) {
	const long, tries, faster = 5 * time.Millisecond, 8, 0.9
	if c.once, err = d.took(c.one, 1); err != nil {
		return err
	}
	for range tries {
		before := c.once
		if c.once, err = d.took(c.one, max(1, min(int(long/max(before, 1)), maxLaunches))); err != nil {
			return err
		}
		if c.once.Seconds() > faster*before.Seconds() {
			break
		}
	}
	return nil
}

// Start queues the legs, back to back, and returns at once; see [Batch.Start]. Some tens of
// microseconds of fills go before the first stamp.
func (t *Train) Start(legs []Leg) error {
	if len(legs) == 0 {
		return fmt.Errorf("train %s: no legs", t.name)
	}
	for i, l := range legs {
		if l.Product < 0 || l.Product >= len(t.cars) || l.Executions < 1 {
			return fmt.Errorf("train %s: leg %d is %d executions of product %d: it takes one execution or more, and there are %d products, counted from 0",
				t.name, i, l.Executions, l.Product, len(t.cars))
		}
	}
	c := &course{train: t, legs: slices.Clone(legs)}
	r, err := t.device.start("train "+t.name, c)
	if r != nil {
		t.run, t.course = r, c
	}
	return err
}

// Wait returns when all legs have run, with the card's error if there was one, or as soon as ctx is
// done; the card then stops as for [Batch.Wait].
func (t *Train) Wait(ctx context.Context) error {
	if t.run == nil {
		return fmt.Errorf("train %s: nothing was started", t.name)
	}
	return t.run.wait(ctx)
}

// Stamps of the last Start, in the order of time. It fails where not all legs have run.
func (t *Train) Stamps() ([]Stamp, error) {
	switch {
	case t.run == nil || !t.run.over():
		return nil, fmt.Errorf("train %s: no legs have ended", t.name)
	case t.run.err != nil:
		return nil, t.run.err
	}
	return slices.Clone(t.course.stamps), nil
}

// Close ends a running train and gives its memory back; twice does nothing.
func (t *Train) Close() error {
	t.run.end()
	for _, l := range t.layers {
		l.destroy()
	}
	return t.device.giveBack(func() error {
		errs := []error{t.memory.free()}
		for i := range t.cars {
			errs = append(errs, t.cars[i].destroy(t.device))
		}
		t.cars = nil
		return errors.Join(errs...)
	})
}

func (c *car) destroy(d *Device) error {
	if c.many == c.one {
		c.many = 0
	}
	return errors.Join(d.destroyGraph(&c.one), d.destroyGraph(&c.many))
}
