package power

import (
	"errors"
	"fmt"
)

// Governor changes a card's settings, which a [Card] cannot. The caller must restore the settings. The methods that change
// settings return [ErrNotPermitted] if this process may not change them.
type Governor interface {
	// PowerLimit returns the current setting in watts.
	PowerLimit() (float64, error)
	// PowerLimits returns the lowest and highest possible setting and the default, in watts.
	PowerLimits() (low, high, preset float64, err error)
	// SetPowerLimit sets the power limit in watts.
	SetPowerLimit(watts float64) error
	// LockClock locks the multiprocessors' clock at a value in MHz, as far as power and temperature allow. An
	// earlier lock cannot be queried.
	LockClock(mhz float64) error
	// UnlockClock lets the clock follow the load again.
	UnlockClock() error
}

// Govern returns the card's governor; for a wrapper, the governor of the card that Unwrap returns. It checks the permission by
// setting the power limit to its current value. The error is ErrAbsent if settings cannot be changed, and ErrNotPermitted if this
// process may not change them.
func Govern(card Card) (Governor, error) {
	if card == nil {
		return nil, fmt.Errorf("no card was given: %w", ErrAbsent)
	}
	g, ok := card.(Governor)
	for !ok {
		wrapper, wraps := card.(interface{ Unwrap() Card })
		if !wraps {
			return nil, fmt.Errorf("%s: no way to change its settings: %w", card.Info().Name, ErrAbsent)
		}
		card = wrapper.Unwrap()
		g, ok = card.(Governor)
	}
	watts, err := g.PowerLimit()
	if err == nil {
		err = g.SetPowerLimit(watts)
	}
	// A card without a power limit may still have a clock to lock.
	if err != nil && !errors.Is(err, ErrAbsent) {
		return nil, fmt.Errorf("%s: %w", card.Info().Name, err)
	}
	return g, nil
}
