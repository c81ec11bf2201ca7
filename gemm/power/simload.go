package power

import (
	"context"
	"time"
)

// SimKernel is one execution of work for a simulated card: the card's power in watts and the execution's time in seconds,
// at the highest clock and the reference temperature. Memory is the memory's part of the power above idle, in watts.
type SimKernel struct{ Watts, Seconds, Memory float64 }

// SimLoad is work for a simulated card, with a known energy per execution.
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

// Load returns work of this power in watts and time per execution in seconds, at the maximal clock and the
// reference temperature.
func (s *Sim) Load(name string, watts, seconds float64) *SimLoad {
	return &SimLoad{sim: s, name: name, kernel: SimKernel{Watts: watts, Seconds: seconds}}
}

// Draw changes the power of later executions, and the memory's part of it, in watts.
func (l *SimLoad) Draw(watts, memory float64) { l.kernel.Watts, l.kernel.Memory = watts, memory }

// Name returns the load's name.
func (l *SimLoad) Name() string { return l.name }

// Start queues n executions.
func (l *SimLoad) Start(n int) error {
	l.last = l.sim.enqueue(l.kernel, n)
	return nil
}

// Wait advances the card's time until the queue is empty.
func (l *SimLoad) Wait(ctx context.Context) error { return l.sim.drain(ctx) }

// Elapsed returns the time of the last Start's executions. It fails with [ErrAbsent] before they have ended.
func (l *SimLoad) Elapsed() (time.Duration, error) {
	if l.last == nil || l.last.end == 0 {
		return 0, ErrAbsent
	}
	return l.last.end - l.last.begin, nil
}

// enqueue queues n executions.
func (s *Sim) enqueue(k SimKernel, n int) *simWork {
	w := &simWork{SimKernel: k, left: float64(n), begin: s.now}
	s.queue = append(s.queue, w)
	if len(s.queue) == 1 {
		s.settle()
	}
	return w
}

// drain advances the time until the queue is empty.
func (s *Sim) drain(ctx context.Context) error {
	for len(s.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.advance(s.nextEvent())
	}
	return ctx.Err()
}
