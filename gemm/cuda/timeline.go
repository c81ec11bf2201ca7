package cuda

import (
	"math"
	"time"
)

// timeline converts events to times of the card's clock since the device was opened.
//
// The driver returns the time between two events as a float32 of milliseconds. This is exact to the nanosecond over 16
// ms, but wrong by up to 30 ns over a second and by 30 µs over ten minutes. timeline therefore measures every event
// from a recent base event. An event later than link after the base becomes the next base. While a sequence runs, its
// stamps are bases. Their times are exact if executions take 8 ms or less. For longer executions the error is 3e-8 of
// an execution. A pause of up to a second adds an error of up to ±30 ns. Hundreds of pauses in ten minutes add up to
// some tenths of a microsecond.
//
// The length of the first interval does not matter, because its error is common to all later times.
//
// Methods must be called on the device's thread.
type timeline struct {
	device *Device
	base   uintptr
	since  time.Duration // time of the base since the device was opened
	free   []uintptr     // events for reuse; like events of failed work, they are destroyed with the device
}

// link is half of the interval over which a float32 of milliseconds is exact to the nanosecond. The other half is for
// the next stamp.
const link = 8 * time.Millisecond

// begin records the zero of time.
func (t *timeline) begin(d *Device) (err error) {
	t.device = d
	t.base, err = t.mark()
	return err
}

// mark records an event after everything queued so far.
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

// when returns an event's time and recycles the event. Events must come in time order.
func (t *timeline) when(event uintptr) (time.Duration, error) {
	from, err := t.device.between(t.base, event)
	at := t.since + from
	if err == nil && from > link {
		t.base, t.since, event = event, at, t.base
	}
	t.free = append(t.free, event)
	return at, err
}

// duration converts the driver's milliseconds. It rounds, because truncation errors would add up.
func duration(milliseconds float32) time.Duration {
	return time.Duration(math.Round(float64(milliseconds) * float64(time.Millisecond)))
}
