// Package powercap decides from a card's readings whether its power limit held down the clock.
package powercap

// Often is the share of samples with the driver's power cap from which work counts as capped.
const Often = 0.5

// Near reports whether power is at a limit, in watts. Cards at their limit draw a little less.
func Near(watts, limit float64) bool {
	const share = 0.96
	return watts >= share*limit
}

// Slow reports whether a clock is below the highest, by more than it fluctuates.
func Slow(clock, highest float64) bool {
	const share = 0.99
	return clock < share*highest
}
