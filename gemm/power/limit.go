package power

import "github.com/lowtoggle/lowtoggle/internal/powercap"

// Limit is the cause that limits a load's clock.
type Limit string

const (
	// AveragePower means that average power is at the card's limit.
	AveragePower Limit = "average_power"
	// DriverCap means that the driver reports its power cap although mean power is below the card's limit. The sensors
	// do not show which quantity the driver limits.
	DriverCap Limit = "driver_cap"
	// StretchedClock means that the clock during the work is lower than the reported clock, while the driver reports no
	// power cap.
	StretchedClock Limit = "stretched_clock"
	// ReportedClock means that the reported clock is below the maximum, and the driver reports no reason.
	ReportedClock Limit = "reported_clock"
)

// limit returns the cause that limited the clock. It is empty if the load ran at the maximum clock, or if a needed
// sensor is missing.
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

// Describe returns the limit in words. An empty limit does not imply the maximum clock, because a sensor may be
// missing.
func (l Limit) Describe() string {
	switch l {
	case AveragePower:
		return "average power is at the card's limit"
	case DriverCap:
		return "the driver reports its power cap, although mean power is below the card's limit"
	case StretchedClock:
		return "the clock during the work is below the reported clock, and the driver reports no power cap"
	case ReportedClock:
		return "the reported clock is below the maximum, and the driver reports no reason"
	}
	return "the sensors show no reason for a lower clock"
}
