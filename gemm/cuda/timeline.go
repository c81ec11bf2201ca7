package cuda

import (
	"math"
	"time"
)

// timeline tells when events have happened by one clock, the card's, since the device was opened.
//
// The driver tells the time between two events as a float32 of milliseconds: to the nanosecond over
// 16 ms, but wrong by up to 30 ns over a second and by 30 µs over ten minutes. So every event is
// measured from a base that lies shortly before it, and whenever an event is further than a link from
// the base, it becomes the base of what follows. While a sequence runs, its stamps are links that are
// exact (where executions take 8 ms or less; else wrong by 3e-8 of them). A pause between two events of
// up to a second is a link that is wrong by up to 30 ns, either way with equal chance: hundreds of them
// in ten minutes add up to some tenths of a microsecond.
//
// How long the first link was does not matter: what it is wrong by is the same for all that follows.
//
// Its methods belong on the device's thread.
type timeline struct {
	device *Device
	base   uintptr
	since  time.Duration // of the base, since the device was opened
	free   []uintptr     // events to be recorded; these, and those of work that failed, go with the device
}

// link is half of the time that a float32 of milliseconds holds to the nanosecond, so that there is
// room for the next stamp.
const link = 8 * time.Millisecond

// begin records the zero of time.
func (t *timeline) begin(d *Device) (err error) {
	t.device = d
	t.base, err = t.mark()
	return err
}

// mark records an event behind everything queued so far.
func (t *timeline) mark() (event uintptr, err error) {
	if n := len(t.free); n > 0 {
		event, t.free = t.free[n-1], t.free[:n-1]
	} else if event, err = t.device.event(); err != nil {
		return 0, err
	}
	if err := t.device.mark(event); err != nil {
		t.free = append(t.free, event)
		return 0, err
	}
	return event, nil
}

// when says when an event has happened, and takes it back. Events come in the order of time.
func (t *timeline) when(event uintptr) (time.Duration, error) {
	from, err := t.device.between(t.base, event)
	at := t.since + from
	if err == nil && from > link {
		t.base, t.since, event = event, at, t.base
	}
	t.free = append(t.free, event)
	return at, err
}

// duration is that of the driver's milliseconds, rounded: what is cut off would add up.
func duration(milliseconds float32) time.Duration {
	return time.Duration(math.Round(float64(milliseconds) * float64(time.Millisecond)))
}
