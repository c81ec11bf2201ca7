package cuda

import (
	"context"
	"errors"
	"time"
)

// Leg is a stretch of a train: one product, over and over.
type Leg struct {
	Product    int // of those that the train was made of, from 0
	Executions int
}

// Stamp is a moment of a train by the card's clock: so many executions of a leg were done then. The
// first stamp of a train has none done, and is when the card began.
type Stamp struct {
	Leg, Done int
	At        time.Duration
}

// ClockReading is one reading of the card's clock: it was made between two moments of the host's.
type ClockReading struct {
	Before, After time.Duration // by the host's clock that was given
	Card          time.Duration // by the card's; since an arbitrary moment, the same as for stamps
}

// Train runs products one after the other and notes when, by the card's own clock.
type Train struct{}

// NewTrain puts products on the card.
func (d *Device) NewTrain(ctx context.Context, name string, products []Product) (*Train, error) {
	return nil, errors.New("not built")
}

// Start queues the legs, back to back, and returns at once.
func (t *Train) Start(legs []Leg) error { return errors.New("not built") }

// Wait returns when all legs have run, or as soon as ctx is done.
func (t *Train) Wait(ctx context.Context) error { return errors.New("not built") }

// Stamps of the last Start, in the order of time. It is called after Wait.
func (t *Train) Stamps() ([]Stamp, error) { return nil, errors.New("not built") }

// Close gives the memory back; twice does nothing.
func (t *Train) Close() error { return nil }

// ReadClock reads the card's clock while the card is idle; now is the host's.
func (d *Device) ReadClock(now func() time.Duration) (ClockReading, error) {
	return ClockReading{}, errors.New("not built")
}
