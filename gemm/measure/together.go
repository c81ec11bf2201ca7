package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// Named is a machine with its name in reports and errors, such as "card 0".
type Named struct {
	Name string
	Machine
}

// Together runs work on all machines at the same time, each in its own goroutine, and returns when all are done. work
// is called with the index of its machine and must store its results itself.
//
// Each card is measured separately. work should call ready before it measures ([Options].Ready). ready returns when all
// running cards have called it, or when the context ends, so that all cards start at the same time. The cards are not
// synchronised after that, and one card may run longer than the others.
//
// Cards of one host share its cooling and power supply, as they do in production. Heat from other cards affects all
// loads of a card equally, but the card's figures may differ from a measurement of the card alone.
//
// The first error cancels the work on the other machines. Each error names its machine. Errors caused by the
// cancellation are left out. If ctx ends, its error is returned without the names of machines.
func Together(ctx context.Context, machines []Named, work func(ctx context.Context, i int, ready func()) error) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	start := newGate(len(machines))
	errs := make([]error, len(machines))
	var all sync.WaitGroup
	for i, m := range machines {
		all.Go(func() {
			defer start.leave()
			err := work(inner, i, func() { start.wait(inner) })
			if err == nil {
				return
			}
			ended := inner.Err() != nil && errors.Is(err, inner.Err())
			if !ended {
				err = fmt.Errorf("%s: %w", m.Name, err)
			}
			if !ended || ctx.Err() != nil {
				errs[i] = err
			}
			cancel()
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return err
		}
	}
	return errors.Join(errs...)
}

// gate opens when all remaining participants wait at the gate.
type gate struct {
	mu       sync.Mutex
	expected int // number of participants that have not left the gate
	waiting  int
	open     chan struct{} // closed when the waiting participants may continue
}

func newGate(expected int) *gate { return &gate{expected: expected, open: make(chan struct{})} }

// wait returns when all remaining participants wait, or when the context ends.
func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	g.waiting++
	open := g.open
	g.pass()
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
}

// leave removes one participant.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expected--
	g.pass()
}

func (g *gate) pass() {
	if g.waiting > 0 && g.waiting >= g.expected {
		close(g.open)
		g.waiting, g.open = 0, make(chan struct{})
	}
}
