package power

import (
	"context"
	"time"
)

// SimLoad is work for a simulated card, with a planted energy per execution.
type SimLoad struct {
	sim            *Sim
	name           string
	watts, seconds float64
	last           *simBatch
}

// simBatch is what one Start queued.
type simBatch struct {
	load       *SimLoad
	left       float64       // executions
	begin, end time.Duration // begin: when it came to the front of the queue
}

// Load makes work that would draw so many watts at the maximal clock and the reference
// temperature, each execution lasting so many seconds there.
func (s *Sim) Load(name string, watts, seconds float64) *SimLoad {
	return &SimLoad{sim: s, name: name, watts: watts, seconds: seconds}
}

// Draw changes what the load would draw, for executions that are started from now on.
func (l *SimLoad) Draw(watts float64) { l.watts = watts }

// Name as given.
func (l *SimLoad) Name() string { return l.name }

// Start queues n executions.
func (l *SimLoad) Start(n int) error {
	l.last = &simBatch{load: l, left: float64(n), begin: l.sim.now}
	l.sim.queue = append(l.sim.queue, l.last)
	l.sim.settle()
	return nil
}

// Wait lets the card's time pass until the queue is empty.
func (l *SimLoad) Wait(ctx context.Context) error {
	for len(l.sim.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.sim.advance(l.sim.nextEvent())
	}
	return ctx.Err()
}

// Elapsed is how long the last batch ran.
func (l *SimLoad) Elapsed() (time.Duration, error) {
	if l.last == nil || l.last.end == 0 {
		return 0, ErrAbsent
	}
	return l.last.end - l.last.begin, nil
}
