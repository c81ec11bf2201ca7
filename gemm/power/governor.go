package power

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

// Govern is the card's governor. It fails with ErrAbsent where settings cannot be changed, and with
// ErrNotPermitted where this process may not.
func Govern(card Card) (Governor, error) {
	g, ok := card.(Governor)
	if !ok {
		return nil, ErrAbsent
	}
	return g, nil
}
