package cost

import (
	"math"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// BelowCap is a product's energy and time while the card's mean power is below its limit, as on a lightly loaded
// server. Both are relative to random operands under the same condition, and exclude the energy of the pauses.
type BelowCap struct {
	Relative float64 `json:"relative_energy"`
	// Interval and TimeInterval are the 95 % intervals for one exact reading of another card of the kind. They
	// include the errors of the activity and of the facts that determine the clock. Absent: unknown.
	Interval     []float64 `json:"interval,omitempty"`
	RelativeTime float64   `json:"relative_time"`
	TimeInterval []float64 `json:"time_interval,omitempty"`
	Clock        float64   `json:"clock_mhz"` // during the product
}

// atCap reports whether a series' baseline runs at the power limit.
func (c *Calibration) atCap(s *Series) bool { return !s.Cold && c.slowed(&s.Baseline) }

// burstAt is energyAt while the card's mean power is below its limit, by power facts p. The card then limits the power
// within a burst, so its clock is higher by the same factor for all work, up to the highest clock. atLimit is the clock,
// in MHz, at which random operands of the product's own shape reach the power limit. Energy, time and clock are relative
// to these operands at the power limit.
func (c *Calibration) burstAt(p *PowerLaw, s *Series, atLimit, activity float64) (energy, time, clock float64) {
	if !c.atCap(s) {
		return p.energyAt(s, activity)
	}
	w, static, exponent := s.Baseline.Watts, p.Static.Usual, p.ClockExponent.Usual
	clock = min(c.highestClock()/atLimit, p.Bursts.Usual*elementary.Pow(activity, -1/exponent))
	time = 1 / clock
	return (float64(activity*(w-static)*elementary.Pow(clock, exponent-1)) + float64(static*time)) / w, time, clock
}

// belowCap returns the prediction for operands relative to random operands. at returns energy and time for given
// power facts. half returns the half width of the interval of a relative energy or time, from the errors of the
// activity alone.
func (p *PowerLaw) belowCap(at func(*PowerLaw) (energy, time float64), half func(relative float64) float64) *BelowCap {
	energy, time := at(p)
	first, firstTime := half(energy), half(time)
	squares, timeSquares := float64(first*first), float64(firstTime*firstTime)
	for _, fact := range []func(*PowerLaw) *Likely{
		func(p *PowerLaw) *Likely { return p.Bursts }, func(p *PowerLaw) *Likely { return &p.Static }, func(p *PowerLaw) *Likely { return &p.ClockExponent },
	} {
		var most, mostTime float64
		for _, end := range []func(*Likely) float64{func(l *Likely) float64 { return l.Low }, func(l *Likely) float64 { return l.High }} {
			other := *p
			bursts := *p.Bursts
			other.Bursts = &bursts
			l := fact(&other)
			l.Usual = end(l)
			e, t := at(&other)
			most, mostTime = max(most, math.Abs(e-energy)), max(mostTime, math.Abs(t-time))
		}
		squares, timeSquares = squares+float64(most*most), timeSquares+float64(mostTime*mostTime)
	}
	around := func(v, squares float64) []float64 { return []float64{v - math.Sqrt(squares), v + math.Sqrt(squares)} }
	return &BelowCap{Relative: energy, Interval: around(energy, squares), RelativeTime: time, TimeInterval: around(time, timeSquares)}
}

// shared is [Prediction.shared] for these figures.
func (b *BelowCap) shared(share float64) *BelowCap {
	if b == nil {
		return nil
	}
	of := func(relative float64) float64 { return 1 - float64(share*(1-relative)) }
	both := func(interval []float64) (list []float64) {
		for _, v := range interval {
			list = append(list, of(v))
		}
		return list
	}
	return &BelowCap{of(b.Relative), both(b.Interval), of(b.RelativeTime), both(b.TimeInterval), b.Clock}
}
