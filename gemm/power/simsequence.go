package power

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SimSequence is a launch sequence of a simulated card, with time stamps in the card's clock.
type SimSequence struct {
	sim      *Sim
	kernels  []SimKernel
	segments []simSegment
}

// SimSegment is a part of a sequence: a number of executions of one kernel.
type SimSegment struct{ Kernel, Executions int }

// SimStamp is the time, in the card's clock, at which Done executions of a segment had ended. The first stamp of a
// sequence has Done 0 and is its start.
type SimStamp struct {
	Segment, Done int
	At            time.Duration
}

// simSegment is a part of a segment with a stamp at its end.
type simSegment struct {
	segment, done int
	work          *simWork
}

const (
	// simIdle is the time without work after which the card is treated as idle.
	simIdle = 10 * time.Millisecond
	// Each of the first simSingle executions of a segment has its own stamp. Later stamps follow about every
	// simStamped.
	simSingle  = 16
	simStamped = time.Millisecond
)

// NewSequence returns a sequence of kernels.
func (s *Sim) NewSequence(kernels []SimKernel) *SimSequence {
	return &SimSequence{sim: s, kernels: kernels}
}

// Start queues the segments. It fails if the card is busy.
func (t *SimSequence) Start(segments []SimSegment) error {
	if err := t.sim.lost(); err != nil {
		return err
	}
	if len(t.sim.queue) > 0 {
		return errors.New("the card is busy: wait for it first")
	}
	if len(segments) == 0 {
		return errors.New("no segments: give at least one")
	}
	for i, l := range segments {
		if l.Kernel < 0 || l.Kernel >= len(t.kernels) || l.Executions < 1 {
			return fmt.Errorf("segment %d: %d executions of kernel %d: give at least one execution, and a kernel from 0 to %d", i, l.Executions, l.Kernel, len(t.kernels)-1)
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
			t.segments = append(t.segments, simSegment{i, done, t.sim.enqueue(one, float64(n))})
		}
	}
	return nil
}

// Wait advances the card's time until all segments have run. When the context ends, queued work is dropped.
func (t *SimSequence) Wait(ctx context.Context) error {
	err := t.sim.drain(ctx)
	if err != nil {
		t.sim.abandon()
	}
	return err
}

// Stamps returns the time stamps of the last Start. It fails if not all segments have run.
func (t *SimSequence) Stamps() ([]SimStamp, error) {
	if len(t.segments) == 0 || t.segments[len(t.segments)-1].work.end == 0 {
		return nil, errors.New("the sequence has not ended: call Start and Wait first")
	}
	stamps := []SimStamp{{At: t.sim.card(t.segments[0].work.begin)}}
	for _, l := range t.segments {
		stamps = append(stamps, SimStamp{l.segment, l.done, t.sim.card(l.work.end)})
	}
	return stamps, nil
}

// abandon drops all queued work.
func (s *Sim) abandon() {
	if len(s.queue) > 0 {
		s.queue, s.busy = nil, s.now
		s.settle()
	}
}
