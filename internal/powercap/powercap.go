// Package powercap decides from a card's readings whether the power limit lowered the clock.
package powercap

// Often is the least share of samples with the driver's power-cap flag for which work counts as capped.
const Often = 0.5

// Near reports whether watts, a power, is at limit. Cards at their limit draw a little less.
func Near(watts, limit float64) bool {
	const share = 0.96
	return watts >= share*limit
}

// Slow reports whether a clock is below the highest clock by more than the clock fluctuates.
func Slow(clock, highest float64) bool {
	const share = 0.99
	return clock < share*highest
}
