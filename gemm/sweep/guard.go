package sweep

import (
	"errors"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Original is what a card was set to before a sweep.
type Original struct {
	Cap float64 `json:"cap_watts"` // the power limit
	// Clocks says that the clock may have been locked: it is unlocked. What it was locked to before cannot
	// be asked for.
	Clocks bool `json:"clocks,omitempty"`
}

// Restore sets what it says, reads it back and compares. It tries everything, and what fails again: the
// error is that of the last try.
func (o Original) Restore(g power.Governor) error {
	const tries = 3
	var err error
	for range tries {
		if err = o.restore(g); err == nil {
			return nil
		}
	}
	return err
}

func (o Original) restore(g power.Governor) error {
	var clock error
	if o.Clocks {
		if clock = g.UnlockClock(); errors.Is(clock, power.ErrAbsent) {
			clock = nil // nor could it be locked
		}
	}
	limit := g.SetPowerLimit(o.Cap)
	have, err := g.PowerLimit()
	switch {
	case err == nil && same(have, o.Cap):
		limit = nil // whatever the call said
	case err == nil && limit == nil:
		limit = fmt.Errorf("the power limit is %g W and should be %g", have, o.Cap)
	}
	return errors.Join(clock, limit)
}

// same limits: a driver keeps milliwatts.
func same(a, b float64) bool { return math.Abs(a-b) < 0.5 }

// Watchdog puts the settings back where this process cannot any more.
type Watchdog interface {
	// Alive fails where it is not there any more.
	Alive() error
	// Done says that the settings are back, and waits for its end.
	Done() error
	// Restore makes it put them back, and waits until it has.
	Restore() error
}

// Guard changes a card's settings and puts them back.
type Guard struct {
	governor power.Governor
	original Original
	watchdog Watchdog
	changed  bool
}

// NewGuard reads what is set, and finds out whether this process may set it by setting the same again.
// clocks says that clocks are going to be locked. watch is called with what is to be put back before
// anything is changed; nil: nobody watches.
func NewGuard(g power.Governor, clocks bool, watch func(Original) (Watchdog, error)) (*Guard, error) {
	limit, err := g.PowerLimit()
	if err != nil {
		return nil, fmt.Errorf("the card's power limit cannot be read: %w", err)
	}
	if err := g.SetPowerLimit(limit); err != nil {
		return nil, fmt.Errorf("the card's power limit cannot be set, not even to what it is: %w", err)
	}
	guard := &Guard{governor: g, original: Original{limit, clocks}}
	if watch != nil {
		if guard.watchdog, err = watch(guard.original); err != nil {
			return nil, fmt.Errorf("no watchdog, so nothing is changed: %w", err)
		}
	}
	return guard, nil
}

// Original settings.
func (g *Guard) Original() Original { return g.original }

// Apply puts the card at a setting and reads the limit back.
func (g *Guard) Apply(s Setting) error {
	if g.watchdog != nil {
		if err := g.watchdog.Alive(); err != nil {
			return fmt.Errorf("the watchdog is gone, and without it nothing is changed: %w", err)
		}
	}
	if s.Clock > 0 && !g.original.Clocks {
		return errors.New("a clock may not be locked: the guard was not told that clocks would be")
	}
	limit := s.Cap
	if limit == 0 {
		limit = g.original.Cap
	}
	g.changed = true
	if err := g.governor.SetPowerLimit(limit); err != nil {
		return fmt.Errorf("power limit of %g W: %w", limit, err)
	}
	if have, err := g.governor.PowerLimit(); err != nil || !same(have, limit) {
		return errors.Join(err, fmt.Errorf("the power limit was set to %g W and reads %g", limit, have))
	}
	switch {
	case s.Clock > 0:
		if err := g.governor.LockClock(s.Clock); err != nil {
			return fmt.Errorf("clock of %g MHz: %w", s.Clock, err)
		}
	case g.original.Clocks:
		if err := g.governor.UnlockClock(); err != nil {
			return fmt.Errorf("unlocking the clock: %w", err)
		}
	}
	return nil
}

// RestoreError says that a card is not as it was found.
type RestoreError struct {
	Original Original
	Err      error
}

func (e *RestoreError) Error() string {
	return fmt.Sprintf("the card's settings could not be put back (a power limit of %g W): %v", e.Original.Cap, e.Err)
}

func (e *RestoreError) Unwrap() error { return e.Err }

// Close puts back what was found; where that fails the watchdog tries, and where that fails too it is a
// *RestoreError. Twice does nothing.
func (g *Guard) Close() error {
	if g.changed {
		if err := g.original.Restore(g.governor); err != nil {
			if g.watchdog != nil {
				late := g.watchdog.Restore()
				g.watchdog = nil
				if late == nil {
					g.changed = false
					return nil
				}
				err = errors.Join(err, late)
			}
			return &RestoreError{g.original, err}
		}
		g.changed = false
	}
	if g.watchdog == nil {
		return nil
	}
	watchdog := g.watchdog
	g.watchdog = nil
	if err := watchdog.Done(); err != nil {
		return fmt.Errorf("the card's settings are as they were, but the watchdog: %w", err)
	}
	return nil
}

// Run does something and closes the guard, whatever comes of it: an error comes back beside that of
// closing, and a panic goes on after it.
func (g *Guard) Run(do func() error) (err error) {
	defer func() { err = errors.Join(err, g.Close()) }()
	return do()
}
