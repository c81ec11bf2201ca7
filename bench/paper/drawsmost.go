package paper

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// drawsMost holds if a type draws more power than each of the others, on average over the points of the experiments ids. All types
// are compared under the same conditions, on one card, and at the highest clock of all readings. If no card has measured all
// types, the outcome is Open, and the effect compares different cards. Intervals that decide a failure are corrected for the
// number of other types.
func drawsMost(typ arith.Type, others []arith.Type, ids ...string) func([]setupResults) []Effect {
	return func(all []setupResults) (list []Effect) {
		for _, s := range all {
			among := []setupResults{s}
			for _, o := range all {
				if conditionsOf(o.Setup) == conditionsOf(s.Setup) && slices.Contains(others, o.Type) {
					among = append(among, o)
				}
			}
			if s.Type != typ || len(among) < 2 {
				continue
			}
			means, one := onOneCard(among, ids)
			one = one && len(among) == 1+len(others)
			if means == nil {
				continue
			}
			e := mostPower(means, len(others))
			if !one {
				e.Outcome = Open
				e.Where += notOneCard
			}
			e.Setup = s.Setup
			list = append(list, e)
		}
		return list
	}
}

// notOneCard ends the text of an effect that compares different cards.
const notOneCard = ", not on one card"

// mostPower compares the first type's power with the power of each other type. As in [decision.interval], intervals need no
// correction for the outcome Holds.
func mostPower(means []typePower, comparisons int) (e Effect) {
	first, margin, next := means[0], math.Inf(1), typePower{}
	e = Effect{Energy: math.NaN(), HalfWidth: math.NaN(), Outcome: Holds}
	for _, o := range means[1:] {
		halfWidth := math.Hypot(first.halfWidth, o.halfWidth)
		wider := halfWidth * widening(min(first.freedom, o.freedom), comparisons)
		switch {
		case first.high/o.low-1 < -wider:
			e.Outcome = Fails
		case !(first.low/o.high-1 > halfWidth) && e.Outcome == Holds:
			e.Outcome = Open
		}
		if by := first.low/o.high - 1; by < margin {
			margin, next = by, o
		}
	}
	e.Power = margin
	return e.where("at %.0f MHz: %v; next %v", first.clock, first, next)
}

// typePower is a type's mean power at one clock. It lies between low and high, because power was measured at lower clocks.
type typePower struct {
	arith.Type
	clock     float64
	low, high float64
	halfWidth float64 // of the 95 % interval of low and high, relative
	freedom   float64 // degrees of freedom of halfWidth
}

// String returns the range, which is one value if all readings are at the clock.
func (p typePower) String() string {
	text := fmt.Sprintf("%v %.0f", p.Type, p.low)
	if high := fmt.Sprintf("%.0f", p.high); !(p.high < p.low+0.5) {
		text += "…" + high
	}
	if math.IsNaN(p.halfWidth) {
		return text + " W"
	}
	return fmt.Sprintf("%s W ± %.1f %%", text, 100*p.halfWidth)
}

// onOneCard returns the mean power of setups of several types at the same points. It uses the card that has readings of all types
// at the largest number of points. one is true if there is such a card. Otherwise onOneCard uses the readings of all cards.
func onOneCard(among []setupResults, ids []string) (means []typePower, one bool) {
	var cards []string
	clock := 0.0
	for _, s := range among {
		for _, id := range ids {
			for _, r := range s.of[id] {
				for _, reading := range r.Readings {
					cards, clock = append(cards, reading.Card), math.Max(clock, reading.Clock)
				}
			}
		}
	}
	slices.Sort(cards)
	most := 0
	for _, card := range slices.Compact(cards) {
		if m, places := meanPowers(among, ids, clock, func(r Reading) bool { return r.Card == card }); places > most {
			means, most = m, places
		}
	}
	if most > 0 {
		return means, true
	}
	means, _ = meanPowers(among, ids, clock, func(Reading) bool { return true })
	return means, false
}

// meanPowers returns the mean power of each setup over the points at which all setups have readings that satisfy of, and the number
// of these points. The axes of types differ, so points correspond by their position on the axis.
func meanPowers(among []setupResults, ids []string, clock float64, of func(Reading) bool) (means []typePower, places int) {
	sums := make([]typePower, len(among))
	for _, id := range ids {
		for i := range placesOf(id, among[0]) {
			at := make([]typePower, 0, len(among))
			for _, s := range among {
				if axis := placesOf(id, s); i < len(axis) {
					if r, ok := s.of[id].at(axis[i].X); ok {
						if p, ok := r.powerAt(clock, of); ok {
							at = append(at, p)
						}
					}
				}
			}
			if len(at) < len(among) {
				continue
			}
			for j, p := range at {
				sum := &sums[j]
				if places == 0 {
					*sum = typePower{Type: among[j].Type, clock: clock, freedom: p.freedom}
				}
				sum.low, sum.high = sum.low+p.low, sum.high+p.high
				sum.halfWidth = math.Hypot(sum.halfWidth, p.halfWidth*p.low)
				sum.freedom = min(sum.freedom, p.freedom)
			}
			places++
		}
	}
	if places == 0 {
		return nil, 0
	}
	for i := range sums {
		sum := &sums[i]
		sum.halfWidth /= sum.low
		sum.low, sum.high = sum.low/float64(places), sum.high/float64(places)
	}
	return sums, places
}

func placesOf(id string, s setupResults) []At {
	i := slices.IndexFunc(experiments, func(e Experiment) bool { return e.ID == id })
	return experiments[i].Points(s.Type)
}

// powerAt converts the readings that satisfy of to another clock. A higher clock multiplies the power above idle by the ratio of
// the clocks if the voltage is constant, and by up to the third power of this ratio if the voltage rises in proportion. The
// relative half width is taken from the energy.
func (r Result) powerAt(clock float64, of func(Reading) bool) (p typePower, ok bool) {
	n := 0.0
	for _, m := range r.Readings {
		if !of(m) || !(m.Clock > 0) || !(m.Idle < m.Watts) {
			continue
		}
		n++
		ratio := clock / m.Clock
		p.low += m.Idle + (m.Watts-m.Idle)*ratio
		p.high += m.Idle + (m.Watts-m.Idle)*ratio*ratio*ratio
	}
	if n == 0 {
		return p, false
	}
	p.low, p.high, p.freedom = p.low/n, p.high/n, r.Freedom
	p.halfWidth = r.HalfWidth / r.Relative * math.Sqrt(float64(len(r.Readings))/n)
	return p, true
}
