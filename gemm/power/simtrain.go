package power

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SimTrain is kernels for a simulated card that run one after the other, and whose executions are
// noted by the card's own clock.
type SimTrain struct {
	sim     *Sim
	kernels []SimKernel
	legs    []simLeg
}

// SimLeg is a stretch of a train: one kernel, over and over.
type SimLeg struct{ Kernel, Executions int }

// SimStamp is a moment by the card's clock: so many executions of a leg were done then. The first of
// a train has none done, and is when the card began.
type SimStamp struct {
	Leg, Done int
	At        time.Duration
}

// simLeg is part of a leg, with a stamp at its end.
type simLeg struct {
	leg, done int
	work      *simWork
}

const (
	// simIdle is how long a card has nothing to do before it counts as idle.
	simIdle = 10 * time.Millisecond
	// The first simSingle executions of a leg have stamps of their own; then there is one about every
	// simStamped.
	simSingle  = 16
	simStamped = time.Millisecond
)

// NewTrain makes a train of kernels.
func (s *Sim) NewTrain(kernels []SimKernel) *SimTrain { return &SimTrain{sim: s, kernels: kernels} }

// Start queues the legs. It fails where the card still has something to do.
func (t *SimTrain) Start(legs []SimLeg) error {
	if len(t.sim.queue) > 0 {
		return errors.New("the card is busy: wait for what runs there first")
	}
	if len(legs) == 0 {
		return errors.New("a train of no legs: give it one")
	}
	for i, l := range legs {
		if l.Kernel < 0 || l.Kernel >= len(t.kernels) || l.Executions < 1 {
			return fmt.Errorf("leg %d: %d executions of kernel %d: want at least one, of kernels 0 to %d", i, l.Executions, l.Kernel, len(t.kernels)-1)
		}
	}
	o := t.sim.opt
	slow := 1.0
	if o.SlowTrains > 0 && t.sim.rng.Float64() < o.SlowTrains {
		slow += o.SlowBy
	}
	var first []float64
	if t.sim.now-t.sim.busy >= simIdle {
		first = o.FirstExecutions
	}
	t.legs = nil
	for i, l := range legs {
		k := t.kernels[l.Kernel]
		many := max(1, int(simStamped.Seconds()/k.Seconds+0.5))
		k.Seconds *= slow
		for done := 0; done < l.Executions; {
			n := 1
			if done >= simSingle {
				n = min(many, l.Executions-done)
			}
			one := k
			if len(first) > 0 {
				one.Seconds *= first[0]
				first = first[1:]
			}
			done += n
			t.legs = append(t.legs, simLeg{i, done, t.sim.enqueue(one, n)})
		}
	}
	return nil
}

// Wait lets the card's time pass until all legs have run. When the context ends, what is still queued
// does not run.
func (t *SimTrain) Wait(ctx context.Context) error {
	err := t.sim.drain(ctx)
	if err != nil {
		t.sim.abandon()
	}
	return err
}

// Stamps of the last Start. It fails before, and where not all legs have run.
func (t *SimTrain) Stamps() ([]SimStamp, error) {
	if len(t.legs) == 0 || t.legs[len(t.legs)-1].work.end == 0 {
		return nil, errors.New("the train has not come to its end: start it and wait")
	}
	stamps := []SimStamp{{At: t.sim.card(t.legs[0].work.begin)}}
	for _, l := range t.legs {
		stamps = append(stamps, SimStamp{l.leg, l.done, t.sim.card(l.work.end)})
	}
	return stamps, nil
}

// abandon what is queued.
func (s *Sim) abandon() {
	if len(s.queue) > 0 {
		s.queue, s.busy = nil, s.now
		s.settle()
	}
}
