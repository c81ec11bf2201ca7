package cuda

import "time"

// singles is how many executions at the beginning of a leg are noted one by one.
const singles = 16

// course is what is left of a train's Start, and what it has noted.
type course struct {
	train  *Train
	legs   []Leg
	leg    int      // that is being queued
	done   int      // of its executions, queued
	pieces [][]note // on the card, the oldest first
	stamps []Stamp
}

// note is a stamp that has perhaps not happened yet.
type note struct {
	leg, done int
	event     uintptr
}

// next queues steps until they take a piece's time.
func (c *course) next() (mark uintptr, err error) {
	var piece []note
	add := func() error {
		if mark, err = c.train.device.timeline.mark(); err == nil {
			piece = append(piece, note{c.leg, c.done, mark})
		}
		return err
	}
	if c.leg == 0 && c.done == 0 {
		if err := first(c.headStart, add); err != nil {
			return 0, err
		}
	}
	for queued := time.Duration(0); c.leg < len(c.legs) && queued < pieceTime; {
		takes, err := c.step()
		if err == nil {
			err = add()
		}
		if err != nil {
			return 0, err
		}
		queued += takes
		if c.done == c.legs[c.leg].Executions {
			c.leg, c.done = c.leg+1, 0
		}
	}
	c.pieces = append(c.pieces, piece)
	return mark, nil
}

// headStart keeps the card busy for some tens of microseconds while the host queues the first
// executions, which would otherwise wait for it and seem to take longer than they do.
func (c *course) headStart() error {
	d := c.train.device
	for range 4 {
		if err := d.fill(d.workspace, workspaceBytes); err != nil {
			return err
		}
	}
	return nil
}

// step queues the executions up to the next stamp, and says how long they take.
func (c *course) step() (time.Duration, error) {
	leg := c.legs[c.leg]
	car := &c.train.cars[leg.Product]
	exec, launches, n := car.one, 1, 1
	switch left := leg.Executions - c.done; {
	case c.done < singles:
	case left >= car.group:
		exec, n = car.many, car.group
	default: // the rest, in no graph of its own
		launches, n = left, left
	}
	if err := c.train.device.replay(exec, launches); err != nil {
		return 0, err
	}
	c.done += n
	return time.Duration(n) * car.once, nil
}

// ended reads the stamps of the oldest piece, and so gives its events back.
func (c *course) ended() error {
	for _, n := range c.pieces[0] {
		at, err := c.train.device.timeline.when(n.event)
		if err != nil {
			return err
		}
		c.stamps = append(c.stamps, Stamp{Leg: n.leg, Done: n.done, At: at})
	}
	c.pieces = c.pieces[1:]
	return nil
}
