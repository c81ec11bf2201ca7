package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Graph is captured work that a card replays back to back. A device runs one graph, batch or sequence at a time. The
// methods of a graph must be called from one goroutine.
type Graph struct {
	device *Device
	name   string
	kind   string // batch or graph, for messages

	exec   uintptr
	begin  uintptr
	end    uintptr
	marks  [ahead]uintptr
	replay time.Duration // duration of one warm replay

	run *run
}

// NewGraph captures the work that f queues. It calls f twice: the first call loads the kernels, and the second call is
// captured. Both calls must queue the same work. NewGraph then measures the duration of a replay. NewGraph must be
// called within [Device.Do], and f runs there as well. Close frees the graph.
func (d *Device) NewGraph(name string, f func() error) (*Graph, error) {
	g := &Graph{device: d, name: name, kind: "graph"}
	err := first(g.createEvents, f, d.sync, func() error { return g.capture(f) }, g.time)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("graph %s: %w", name, err), g.destroy())
	}
	return g, nil
}

// Name returns the graph's name.
func (g *Graph) Name() string { return g.name }

// Close ends running replays and frees the graph. It is idempotent.
func (g *Graph) Close() error {
	g.run.end()
	return g.device.release(g.destroy)
}

func (g *Graph) events() []*uintptr {
	return []*uintptr{&g.begin, &g.end, &g.marks[0], &g.marks[1], &g.marks[2]}
}

func (g *Graph) createEvents() (err error) {
	for _, e := range g.events() {
		if *e, err = g.device.event(); err != nil {
			return err
		}
	}
	return nil
}

func (g *Graph) capture(f func() error) (err error) {
	g.exec, err = g.device.capture(f)
	return err
}

// longReplay is the duration above which a replay is not measured again.
const longReplay = 4 * pieceTime

// time measures the duration of a replay. The first replay also loads the graph, so a short replay is measured twice.
func (g *Graph) time() error {
	d := g.device
	for range 2 {
		err := first(
			func() error { return d.mark(g.begin) },
			func() error { return d.replay(g.exec, 1) },
			func() error { return d.mark(g.end) },
			d.sync,
			func() (err error) { g.replay, err = d.between(g.begin, g.end); return err },
		)
		if err != nil || g.replay > longReplay {
			return err
		}
	}
	return nil
}

// destroy frees the graph and its events. It must be called on the device's thread.
func (g *Graph) destroy() error {
	a := g.device.api
	errs := []error{g.device.destroyGraph(&g.exec)}
	for _, e := range g.events() {
		if *e != 0 {
			errs = append(errs, a.check("cuEventDestroy", a.cuEventDestroy(*e)))
			*e = 0
		}
	}
	return errors.Join(errs...)
}

// Start queues n replays, which begin immediately, and returns at once. It returns an error while another graph or
// sequence is running. It waits for the queued work of a cancelled run.
func (g *Graph) Start(n int) error {
	return g.launchAll(&replays{graph: g, exec: g.exec, left: n, chunk: max(1, int(pieceTime/max(g.replay, 1)))})
}

func (g *Graph) launchAll(all *replays) error {
	if all.left < 1 {
		return fmt.Errorf("%s %s: %d replays: give at least one", g.kind, g.name, all.left)
	}
	r, err := g.device.start(g.kind+" "+g.name, all)
	if r != nil {
		g.run = r
	}
	return err
}

// replays is the remaining work of one Start.
type replays struct {
	graph       *Graph
	exec        uintptr
	left, chunk int          // a piece is chunk replays
	pieces      int          // number of queued pieces
	before      func() error // queued before the first piece; may be nil
}

func (r *replays) next() (mark uintptr, err error) {
	g, now := r.graph, min(r.chunk, r.left)
	if now == 0 {
		return 0, nil
	}
	if r.pieces == 0 {
		if r.before != nil {
			if err := r.before(); err != nil {
				return 0, err
			}
		}
		if err := g.device.mark(g.begin); err != nil {
			return 0, err
		}
	}
	mark = g.marks[r.pieces%ahead] // the event of a piece that has ended
	if r.left == now {
		mark = g.end
	}
	if err := g.device.replay(r.exec, now); err != nil {
		return 0, err
	}
	r.left, r.pieces = r.left-now, r.pieces+1
	return mark, g.device.mark(mark)
}

func (r *replays) ended() error { return nil }

// Wait waits until all replays have run, and returns the card's error if there was one. If ctx ends first, Wait returns
// ctx's error. The card then stops after the queued work, which takes a tenth of a second or three replays.
func (g *Graph) Wait(ctx context.Context) error {
	if g.run == nil {
		return fmt.Errorf("%s %s: call Start before Wait", g.kind, g.name)
	}
	return g.run.wait(ctx)
}

// Elapsed returns the duration of all replays of the last Start, by the card's clock. It returns an error if not all of
// them have run.
func (g *Graph) Elapsed() (took time.Duration, err error) {
	switch {
	case g.run == nil || !g.run.over():
		return 0, fmt.Errorf("%s %s: the replays have not ended: call Start and Wait first", g.kind, g.name)
	case g.run.err != nil:
		return 0, g.run.err
	}
	err = g.device.thread.do(func() (err error) { took, err = g.device.between(g.begin, g.end); return err })
	return took, err
}
