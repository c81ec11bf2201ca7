package cuda

import "time"

// singles is the number of executions at the start of a segment that each have their own stamp.
const singles = 16

// sequenceRun is the state of one Start of a sequence on a card: the remaining work and the stamps so far.
type sequenceRun struct {
	device   *Device
	segments []Segment
	// execute queues executions of a product until the next stamp. queued and left are the numbers of executions
	// already queued and still to queue. execute returns the number of new executions and their duration.
	execute func(product, queued, left int) (n int, takes time.Duration, err error)
	// grant reports whether a piece may be queued. If grant is nil, every piece may be queued.
	grant   func(piece int) bool
	queued  int      // number of queued pieces
	segment int      // index of the segment that is being queued
	done    int      // number of its executions that are queued
	pieces  [][]note // stamps of each piece on the card, oldest piece first
	stamps  []Stamp
}

// note is a stamp whose event the card may not have reached.
type note struct {
	segment, done int
	event         uintptr
}

// next queues executions for the duration of a piece.
func (c *sequenceRun) next() (mark uintptr, err error) {
	if c.segment == len(c.segments) || c.grant != nil && !c.grant(c.queued) {
		return 0, nil
	}
	c.queued++
	var piece []note
	add := func() error {
		if mark, err = c.device.timeline.mark(); err == nil {
			piece = append(piece, note{c.segment, c.done, mark})
		}
		return err
	}
	if c.segment == 0 && c.done == 0 {
		if err := first(c.headStart, add); err != nil {
			return 0, err
		}
	}
	for queued := time.Duration(0); c.segment < len(c.segments) && queued < pieceTime; {
		segment := c.segments[c.segment]
		n, takes, err := c.execute(segment.Product, c.done, segment.Executions-c.done)
		if c.done += n; err == nil {
			err = add()
		}
		if err != nil {
			return 0, err
		}
		queued += takes
		if c.done == c.segments[c.segment].Executions {
			c.segment, c.done = c.segment+1, 0
		}
	}
	c.pieces = append(c.pieces, piece)
	return mark, nil
}

// headStart keeps the card busy for some tens of microseconds while the host queues the first executions. Otherwise
// these executions would wait for the host and appear too slow.
func (c *sequenceRun) headStart() error {
	d := c.device
	for range 4 {
		if err := d.fill(d.workspace, workspaceBytes); err != nil {
			return err
		}
	}
	return nil
}

// execute queues the executions up to the next stamp; see [sequenceRun].
func (t *Sequence) execute(product, queued, left int) (n int, takes time.Duration, err error) {
	g := &t.graphs[product]
	exec, launches, n := g.one, 1, 1
	switch {
	case queued < singles:
	case left >= g.group:
		exec, n = g.many, g.group
	default: // the remaining executions, one by one
		launches, n = left, left
	}
	if err := t.device.replay(exec, launches); err != nil {
		return 0, 0, err
	}
	return n, time.Duration(n) * g.once, nil
}

// ended reads the stamps of the oldest piece and releases its events.
func (c *sequenceRun) ended() error {
	for _, n := range c.pieces[0] {
		at, err := c.device.timeline.when(n.event)
		if err != nil {
			return err
		}
		c.stamps = append(c.stamps, Stamp{Segment: n.segment, Done: n.done, At: at})
	}
	c.pieces = c.pieces[1:]
	return nil
}
