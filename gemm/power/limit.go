package power

import "github.com/lowtoggle/lowtoggle/internal/powercap"

// Limit is the cause that holds a load's clock down.
type Limit string

const (
	// AveragePower is the card's power limit, kept on average.
	AveragePower Limit = "average_power"
	// DriverCap is the driver's power cap while the card's mean power is below its limit. The sensors do not show which quantity the
	// driver limits.
	DriverCap Limit = "driver_cap"
	// StretchedClock is a lower clock during the work than the driver reports, while the driver names no power cap.
	StretchedClock Limit = "stretched_clock"
	// ReportedClock is a reported clock below the highest, for no reason that the driver gives.
	ReportedClock Limit = "reported_clock"
)

// limit is empty if the load ran at the highest clock, or if a sensor that would tell is missing.
func (s *Summary) limit(card *Info) Limit {
	switch {
	case s.Capped == nil || card.PowerLimit == nil || s.SMClock == nil:
	case *s.Capped && powercap.Near(s.Watts, *card.PowerLimit):
		return AveragePower
	case *s.Capped:
		return DriverCap
	case s.EffectiveClock != nil && powercap.Slow(*s.EffectiveClock, *s.SMClock):
		return StretchedClock
	case card.MaxSMClock != nil && powercap.Slow(*s.SMClock, *card.MaxSMClock):
		return ReportedClock
	}
	return ""
}

// Describe says in words what the limit is. Without one it does not claim the highest clock: a sensor may be missing.
func (l Limit) Describe() string {
	switch l {
	case AveragePower:
		return "average power, at the card's limit"
	case DriverCap:
		return "the driver reports its power cap, though mean power is below the limit"
	case StretchedClock:
		return "the clock during the work is below the reported one, and the driver names no power cap"
	case ReportedClock:
		return "the reported clock is below the highest, and the driver gives no reason"
	}
	return "none that the sensors show"
}
