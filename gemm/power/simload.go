package power

import (
	"context"
	"time"
)

// SimKernel is what one execution of some work is to a simulated card: the watts that it would draw
// at the maximal clock and the reference temperature, the seconds that it would last there, and what
// of the watts is the memory's, above what that draws when idle.
type SimKernel struct{ Watts, Seconds, Memory float64 }

// SimLoad is work for a simulated card, with a planted energy per execution.
type SimLoad struct {
	sim    *Sim
	name   string
	kernel SimKernel
	last   *simWork
}

// simWork is executions in the card's queue.
type simWork struct {
	SimKernel
	left       float64       // executions
	begin, end time.Duration // begin: when it came to the front of the queue
}

// Load makes work that would draw so many watts at the maximal clock and the reference
// temperature, each execution lasting so many seconds there.
func (s *Sim) Load(name string, watts, seconds float64) *SimLoad {
	return &SimLoad{sim: s, name: name, kernel: SimKernel{Watts: watts, Seconds: seconds}}
}

// Draw changes what the load would draw, and what of it the memory, for executions that are started
// from now on.
func (l *SimLoad) Draw(watts, memory float64) { l.kernel.Watts, l.kernel.Memory = watts, memory }

// Name as given.
func (l *SimLoad) Name() string { return l.name }

// Start queues n executions.
func (l *SimLoad) Start(n int) error {
	l.last = l.sim.enqueue(l.kernel, n)
	return nil
}

// Wait lets the card's time pass until the queue is empty.
func (l *SimLoad) Wait(ctx context.Context) error { return l.sim.drain(ctx) }

// Elapsed is how long the last batch ran.
func (l *SimLoad) Elapsed() (time.Duration, error) {
	if l.last == nil || l.last.end == 0 {
		return 0, ErrAbsent
	}
	return l.last.end - l.last.begin, nil
}

// enqueue n executions.
func (s *Sim) enqueue(k SimKernel, n int) *simWork {
	w := &simWork{SimKernel: k, left: float64(n), begin: s.now}
	s.queue = append(s.queue, w)
	if len(s.queue) == 1 {
		s.settle()
	}
	return w
}

// drain lets time pass until the queue is empty.
func (s *Sim) drain(ctx context.Context) error {
	for len(s.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.advance(s.nextEvent())
	}
	return ctx.Err()
}
