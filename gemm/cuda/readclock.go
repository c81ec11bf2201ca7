package cuda

import "time"

// ClockReading is one reading of the card's clock, between two readings of the host's clock.
type ClockReading struct {
	Before, After time.Duration // by the host's clock
	Card          time.Duration // by the card's clock, since the device was opened, as in stamps
}

// ReadClock reads the card's clock. now returns the host's time. It returns an error while a batch or sequence is
// running, because the reading would wait for the queue. The duration of a reading varies by some microseconds, so use
// the shortest of several readings.
func (d *Device) ReadClock(now func() time.Duration) (ClockReading, error) {
	r := newRun("reading the clock")
	if err := d.occupy(r); err != nil {
		return ClockReading{}, err
	}
	var reading ClockReading
	err := r.finish(d.thread.do(func() (err error) { reading, err = d.timeline.read(now); return err }))
	return reading, err
}

// read reads the clock once. It busy-waits, because an idle stream reaches the event within microseconds.
func (t *timeline) read(now func() time.Duration) (r ClockReading, err error) {
	r.Before = now()
	event, err := t.mark()
	if err != nil {
		return r, err
	}
	for happened := false; !happened; {
		if happened, err = t.device.happened(event); err != nil {
			return r, err
		}
	}
	r.After = now()
	r.Card, err = t.when(event)
	return r, err
}
