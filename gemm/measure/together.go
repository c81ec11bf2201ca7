package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Named is a machine among several, and what reports and errors call it: "card 0".
type Named struct {
	Name string
	Machine
}

// Together runs work on all machines at the same time, for each by its index and in a goroutine of its
// own, and returns when all are done. Work keeps its results itself.
//
// Every card is metered by itself. Called before metering, as [Options.Ready] does, ready holds
// work until all cards that still run have called it or are done, or the context ends: so cards begin
// together, and they need not be in step afterwards. One may go on for longer than the others, which
// are idle then.
//
// Cards of one host share its air and its supply, as they do in use: another card's heat is in each
// card's figures, of whatever it compares alike. Figures of a card alone may be others.
//
// The first error ends the others' contexts. Errors name their machines; what the others failed with
// because they were ended is left out. When ctx ends, its error comes without names.
func Together(ctx context.Context, machines []Named, work func(ctx context.Context, i int, ready func()) error) error {
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

// gate lets all pass when all have come.
type gate struct {
	mu       sync.Mutex
	expected int // that have not left
	waiting  int
	open     chan struct{} // of those that wait now
}

func newGate(expected int) *gate { return &gate{expected: expected, open: make(chan struct{})} }

// wait returns when all that have not left wait, or the context ends.
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

// leave says that somebody will not come any more.
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
