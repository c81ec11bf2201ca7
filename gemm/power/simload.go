package power

import (
	"context"
	"time"
)

// SimKernel is one execution of work for a simulated card. Watts and Seconds are the card's power and the execution's
// time at the maximum clock and the reference temperature. Memory is the memory's share of the power above idle, in
// watts.
type SimKernel struct{ Watts, Seconds, Memory float64 }

// SimLoad is work for a simulated card with a known energy per execution.
type SimLoad struct {
	sim    *Sim
	name   string
	kernel SimKernel
	every  time.Duration // duration of a paced execution with its gaps; 0: back to back
	runs   []*simWork    // runs of the last Start
}

// simWork is a number of executions in the card's queue.
type simWork struct {
	SimKernel
	left       float64       // executions left
	begin, end time.Duration // begin is when the work came to the front of the queue
	slot       time.Duration // duration of a burst and the gap after it; 0: back to back
	gap        bool          // whether this is the gap after the work before it
	cycles     float64       // cycles of a multiprocessor, in millions
}

// Load returns work with a power in watts and a time per execution in seconds, at the maximum clock and the reference
// temperature.
func (s *Sim) Load(name string, watts, seconds float64) *SimLoad {
	return &SimLoad{sim: s, name: name, kernel: SimKernel{Watts: watts, Seconds: seconds}}
}

// Draw sets the power of later executions, and the memory's share of it, in watts.
func (l *SimLoad) Draw(watts, memory float64) { l.kernel.Watts, l.kernel.Memory = watts, memory }

// Name returns the load's name.
func (l *SimLoad) Name() string { return l.name }

// Start queues n executions.
func (l *SimLoad) Start(n int) error {
	if err := l.sim.lost(); err != nil {
		return err
	}
	if l.every > 0 {
		return l.startPaced(n, true)
	}
	l.runs = []*simWork{l.sim.enqueue(l.kernel, float64(n))}
	return nil
}

// Wait advances the card's time until the queue is empty.
func (l *SimLoad) Wait(ctx context.Context) error { return l.sim.drain(ctx) }

// Elapsed returns the duration of the last Start's executions. It fails with [ErrAbsent] before they have ended.
func (l *SimLoad) Elapsed() (time.Duration, error) {
	if len(l.runs) == 0 || l.runs[len(l.runs)-1].end == 0 {
		return 0, ErrAbsent
	}
	return l.runs[len(l.runs)-1].end - l.runs[0].begin, nil
}

// enqueue queues n executions.
func (s *Sim) enqueue(k SimKernel, n float64) *simWork {
	return s.queueWork(&simWork{SimKernel: k, left: n})
}

func (s *Sim) queueWork(w *simWork) *simWork {
	w.begin = s.now
	s.queue = append(s.queue, w)
	if len(s.queue) == 1 {
		s.settle()
	}
	return w
}

// drain advances virtual time until the queue is empty.
func (s *Sim) drain(ctx context.Context) error {
	for len(s.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.lost(); err != nil {
			s.queue = nil
			return err
		}
		s.advance(s.nextEvent())
	}
	return ctx.Err()
}
