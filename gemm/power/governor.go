package power

import (
	"errors"
	"fmt"
)

// Governor changes what a card runs at. [Card] cannot: only what exists for changing settings asks
// for a governor, and puts everything back.
type Governor interface {
	// PowerLimit is the one that is set, in watts.
	PowerLimit() (float64, error)
	// PowerLimits is the range of what can be set, and the default, in watts.
	PowerLimits() (low, high, preset float64, err error)
	SetPowerLimit(watts float64) error
	// LockClock holds the multiprocessors' clock at a value in MHz, as far as power and heat allow.
	// What it was locked to before cannot be asked for.
	LockClock(mhz float64) error
	// UnlockClock lets the clock follow the load again.
	UnlockClock() error
}

// Govern is the card's governor, or that of the card that a wrapper's Unwrap returns. It sets the
// power limit to what it is to find out whether it may. It fails with ErrAbsent where settings cannot
// be changed, and with ErrNotPermitted where this process may not.
func Govern(card Card) (Governor, error) {
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
	// A card without a power limit may have a clock to lock all the same.
	if err != nil && !errors.Is(err, ErrAbsent) {
		return nil, fmt.Errorf("%s: %w", card.Info().Name, err)
	}
	return g, nil
}
