package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Values of [Segment].Product for the segments of a [GroupSequence].
const (
	GroupProducts   = iota // a replay of every card's batch
	GroupCollective        // a collective between all cards
	GroupBoth              // both at the same time; the next execution starts when both have ended
	groupKinds
)

// mostQueued is the approximate number of executions in a piece. With more, a full queue would block the card's thread.
const mostQueued = 256

// GroupSequence is a launch sequence of all cards of a group. [Sequence] is the launch sequence of one card. Its
// methods must be called from one goroutine.
type GroupSequence struct {
	group   *Group
	name    string
	batches []*Batch
	kinds   [groupKinds]struct {
		once  time.Duration // duration of one execution on the slowest card
		group int           // number of executions between two stamps
	}
	run   *GroupRun
	cards []*sequenceRun // the runs of the last Start
}

// NewSequence measures the duration of the products and of the collective of [Group.Prepare], and returns a launch
// sequence. batches has one batch per card.
func (g *Group) NewSequence(ctx context.Context, name string, batches []*Batch) (*GroupSequence, error) {
	if len(batches) != len(g.members) || g.count == 0 {
		return nil, fmt.Errorf("sequence %s: call Prepare first, and give one batch for each of the %d cards", name, len(g.members))
	}
	t := &GroupSequence{group: g, name: name, batches: batches}
	for kind := range t.kinds {
		k := &t.kinds[kind]
		with, set := batches, 0
		if kind == GroupProducts {
			set = -1
		} else if kind == GroupCollective {
			with = nil
		}
		const warm, timed = 2, 8              // executions
		const shortest = 5 * time.Microsecond // launching a collective takes the host at least this long
		for _, n := range []int{warm, timed} {
			r, err := g.Start(name, with, set, n)
			if err == nil {
				err = r.Wait(ctx)
			}
			if err != nil {
				return nil, err
			}
			took, err := r.Elapsed()
			if err != nil {
				return nil, err
			}
			k.once = max(shortest, took/time.Duration(n))
		}
		k.group = max(1, int(stampEvery/k.once))
	}
	return t, nil
}

// Start queues the segments on all cards and returns at once. Every card queues the same work in the same pieces.
func (t *GroupSequence) Start(segments []Segment) error {
	if err := checkSegments(segments, groupKinds); err != nil {
		return fmt.Errorf("sequence %s: %w", t.name, err)
	}
	g := t.group
	r := &GroupRun{group: g, batches: t.batches, runs: make([]*run, len(g.members))}
	cards, errs := make([]*sequenceRun, len(g.members)), make([]error, len(g.members))
	g.run = r
	var all sync.WaitGroup // a card's first collective may wait for the other cards
	for i, m := range g.members {
		cards[i] = &sequenceRun{device: m.device, segments: slices.Clone(segments), grant: r.grant}
		cards[i].execute = func(product, queued, left int) (int, time.Duration, error) {
			return t.execute(i, product, queued, left)
		}
		all.Go(func() { r.runs[i], errs[i] = m.device.start("sequence "+t.name, cards[i]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		r.stop()
		return err
	}
	t.run, t.cards = r, cards
	return nil
}

// execute queues a card's executions until the next stamp; see [sequenceRun].
func (t *GroupSequence) execute(card, product, queued, left int) (n int, takes time.Duration, err error) {
	m, k := t.group.members[card], &t.kinds[product]
	if n = min(left, k.group); queued < singles {
		n = 1
	}
	for range n {
		switch product {
		case GroupProducts:
			err = m.device.replay(t.batches[card].exec, 1)
		case GroupCollective: // the stamps are on this stream as well
			err = t.group.launch(m, m.device.stream, 0)
		default:
			err = t.group.besides(m, t.batches[card], 0)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return n, time.Duration(n) * max(k.once, pieceTime/mostQueued), nil
}

// Wait waits until all cards have run all segments; see [GroupRun.Wait].
func (t *GroupSequence) Wait(ctx context.Context) error {
	if t.run == nil {
		return fmt.Errorf("sequence %s: call Start before Wait", t.name)
	}
	return t.run.Wait(ctx)
}

// Stamps returns a card's stamps of the last Start, in time order. It returns an error if not all segments have run.
func (t *GroupSequence) Stamps(card int) ([]Stamp, error) {
	if t.run == nil || !t.run.runs[card].over() {
		return nil, fmt.Errorf("sequence %s: the segments have not ended: call Start and Wait first", t.name)
	}
	return slices.Clone(t.cards[card].stamps), t.run.runs[card].err
}

// Close stops a running sequence. The group, its buffers and its batches stay open.
func (t *GroupSequence) Close() error {
	if t.run == nil {
		return nil
	}
	t.run.stop()
	for _, one := range t.run.runs {
		<-one.done
	}
	return nil
}
