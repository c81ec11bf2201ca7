package power

import (
	"errors"
	"fmt"
)

// Governor changes a card's settings. The caller must restore them. Methods that change settings return
// [ErrNotPermitted] if this process has no permission.
type Governor interface {
	// PowerLimit returns the current power limit in watts.
	PowerLimit() (float64, error)
	// PowerLimits returns the lowest, highest and default power limit, in watts.
	PowerLimits() (low, high, preset float64, err error)
	// SetPowerLimit sets the power limit in watts.
	SetPowerLimit(watts float64) error
	// LockClock locks the multiprocessors' clock at a value in MHz, as far as power and temperature allow. The value of
	// an earlier lock cannot be queried.
	LockClock(mhz float64) error
	// UnlockClock lets the clock follow the load again.
	UnlockClock() error
}

// Govern returns the card's governor. For a wrapper, it returns the governor of the card that Unwrap returns. It checks
// the permission by setting the power limit to its current value. It returns ErrAbsent if settings cannot be changed,
// and ErrNotPermitted if this process has no permission.
func Govern(card Card) (Governor, error) {
	if card == nil {
		return nil, fmt.Errorf("no card was given: %w", ErrAbsent)
	}
	g, ok := card.(Governor)
	for !ok {
		wrapper, wraps := card.(interface{ Unwrap() Card })
		if !wraps {
			return nil, fmt.Errorf("%s: the settings of this card cannot be changed: %w", card.Info().Name, ErrAbsent)
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
