package power

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SimSequence is kernels for a simulated card that run one after the other, and whose executions are
// noted by the card's own clock.
type SimSequence struct {
	sim      *Sim
	kernels  []SimKernel
	segments []simSegment
}

// SimSegment is a stretch of a sequence: one kernel, over and over.
type SimSegment struct{ Kernel, Executions int }

// SimStamp is a moment by the card's clock: so many executions of a segment were done then. The first of
// a sequence has none done, and is when the card began.
type SimStamp struct {
	Segment, Done int
	At            time.Duration
}

// simSegment is part of a segment, with a stamp at its end.
type simSegment struct {
	segment, done int
	work          *simWork
}

const (
	// simIdle is how long a card has nothing to do before it counts as idle.
	simIdle = 10 * time.Millisecond
	// The first simSingle executions of a segment have stamps of their own; then there is one about every
	// simStamped.
	simSingle  = 16
	simStamped = time.Millisecond
)

// NewSequence makes a sequence of kernels.
func (s *Sim) NewSequence(kernels []SimKernel) *SimSequence {
	return &SimSequence{sim: s, kernels: kernels}
}

// Start queues the segments. It fails where the card still has something to do.
func (t *SimSequence) Start(segments []SimSegment) error {
	if len(t.sim.queue) > 0 {
		return errors.New("the card is busy: wait for what runs there first")
	}
	if len(segments) == 0 {
		return errors.New("a sequence of no segments: give it one")
	}
	for i, l := range segments {
		if l.Kernel < 0 || l.Kernel >= len(t.kernels) || l.Executions < 1 {
			return fmt.Errorf("segment %d: %d executions of kernel %d: want at least one, of kernels 0 to %d", i, l.Executions, l.Kernel, len(t.kernels)-1)
		}
	}
	o := t.sim.opt
	slow := 1.0
	if o.SlowSequences > 0 && t.sim.rng.Float64() < o.SlowSequences {
		slow += o.SlowBy
	}
	var first []float64
	if t.sim.now-t.sim.busy >= simIdle {
		first = o.FirstExecutions
	}
	t.segments = nil
	for i, l := range segments {
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
			t.segments = append(t.segments, simSegment{i, done, t.sim.enqueue(one, n)})
		}
	}
	return nil
}

// Wait lets the card's time pass until all segments have run. When the context ends, what is still queued
// does not run.
func (t *SimSequence) Wait(ctx context.Context) error {
	err := t.sim.drain(ctx)
	if err != nil {
		t.sim.abandon()
	}
	return err
}

// Stamps of the last Start. It fails before, and where not all segments have run.
func (t *SimSequence) Stamps() ([]SimStamp, error) {
	if len(t.segments) == 0 || t.segments[len(t.segments)-1].work.end == 0 {
		return nil, errors.New("the sequence has not come to its end: start it and wait")
	}
	stamps := []SimStamp{{At: t.sim.card(t.segments[0].work.begin)}}
	for _, l := range t.segments {
		stamps = append(stamps, SimStamp{l.segment, l.done, t.sim.card(l.work.end)})
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
