package power

import (
	"context"
	"errors"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// SimClockReading is a reading of the card's clock between two readings of [Sim.Now].
type SimClockReading struct{ Before, After, Card time.Duration }

// simEpoch is the wall-clock time at which the card's virtual time starts.
var simEpoch = time.Unix(0, 0)

// At registers the function do to be called once, when the card's time reaches at.
func (s *Sim) At(at time.Duration, do func()) { s.hooks = append(s.hooks, simHook{at, do}) }

// Now returns the simulated host's time.
func (s *Sim) Now() time.Duration { return s.now }

// Of converts a wall-clock time to the card's time, which starts at the epoch.
func (s *Sim) Of(t time.Time) time.Duration { return t.Sub(simEpoch) }

// Sleep advances the card's time.
func (s *Sim) Sleep(ctx context.Context, d time.Duration) error {
	if ctx == nil {
		return parallel.ErrNoContext
	}
	for end := s.now + d; s.now < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.advance(min(end, s.nextSlot))
	}
	return ctx.Err()
}

// ReadClock reads the card's clock. It fails while the card is busy.
func (s *Sim) ReadClock() (SimClockReading, error) {
	if len(s.queue) > 0 {
		return SimClockReading{}, errors.New("the card is busy: read its clock between runs")
	}
	r := SimClockReading{Before: s.now}
	s.advance(s.now + s.halfway())
	r.Card = s.card(s.now)
	s.advance(s.now + s.halfway())
	r.After = s.now
	return r, nil
}

// halfway returns the delay between host and card, in one direction.
func (s *Sim) halfway() time.Duration {
	return s.opt.ClockDelay/2 + seconds(s.opt.ClockJitter.Seconds()*s.rng.ExpFloat64())
}

// card converts a host time to the card's clock.
func (s *Sim) card(at time.Duration) time.Duration {
	return s.opt.ClockOffset + at + seconds(at.Seconds()*s.opt.ClockDrift*1e-6)
}
