package cost

import "math"

// BelowCap is a product's energy and time while the card's mean power is below its limit, as on a lightly loaded server. Both
// are relative to random operands under the same condition, and exclude the energy of the pauses.
type BelowCap struct {
	Relative     float64 `json:"relative_energy"`
	RelativeTime float64 `json:"relative_time"`
	Clock        float64 `json:"clock_mhz"` // during the product
}

// atCap reports whether a series' baseline runs at the power limit.
func (c *Calibration) atCap(s *Series) bool { return !s.Cold && c.slowed(&s.Baseline) }

// burstAt is energyAt while the card's mean power is below its limit. The card then limits the power within a burst, so the
// clock of all work is higher by the same factor, up to the highest clock. All three results are relative to the series'
// baseline at the power limit.
func (c *Calibration) burstAt(s *Series, activity float64) (energy, time, clock float64) {
	p := &c.Facts.Power
	if !c.atCap(s) {
		return p.energyAt(s, activity)
	}
	w, static, exponent := s.Baseline.Watts, p.Static.Usual, p.ClockExponent.Usual
	clock = min(c.highestClock()/s.Baseline.Clock, p.Bursts.Usual*math.Pow(activity, -1/exponent))
	time = 1 / clock
	return (activity*(w-static)*math.Pow(clock, exponent-1) + static*time) / w, time, clock
}

// shared is [Prediction.shared] of its figures.
func (b *BelowCap) shared(share float64) *BelowCap {
	if b == nil {
		return nil
	}
	return &BelowCap{1 - share*(1-b.Relative), 1 - share*(1-b.RelativeTime), b.Clock}
}
