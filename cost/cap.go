package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Setting is what a card is held to. A field that is 0 is at the card's default.
type Setting struct {
	Cap   float64 `json:"cap_watts,omitempty"` // the power limit
	Clock float64 `json:"clock_mhz,omitempty"` // the highest clock of the multiprocessors
}

// Work is a product as the card runs it at the settings of its calibration.
type Work struct {
	Seconds, Watts, Clock float64
	// compute is the time that multipliers would take at Clock; below Seconds where memory is waited for.
	compute float64
}

// Held is what work takes at a setting, one product after the other. It is predicted; Intervals hold
// what is not known of the way from the measured setting to this one: they are for ratios to the work at
// the calibration's own settings, where they have no width.
type Held struct {
	Joules, Seconds, Watts, Clock   float64
	JoulesInterval, SecondsInterval [2]float64
}

// What a card does below the clock at which it was measured.
type physics struct {
	static   float64 // watts
	exponent float64 // with which the rest follows the clock
	memory   float64 // watts for weights at full rate, which do not follow the clock
	floor    float64 // share of the highest clock below which the voltage stays
	reach    float64 // share of it below which multiprocessors do not ask fast enough to keep the memory busy
	draw     float64 // share of what is predicted that work draws where it waits for memory
}

func (p *PowerLaw) usual() physics {
	return physics{p.Static.Usual, p.ClockExponent.Usual, p.Memory.Usual, p.VoltageFloor.Usual, p.MemoryReach.Usual, p.MemoryDraw.Usual}
}

// likely are all combinations of the lowest and the highest values.
func (p *PowerLaw) likely() (all []physics) {
	ends := func(l Likely) []float64 { return []float64{l.Low, l.High} }
	for _, s := range ends(p.Static) {
		for _, e := range ends(p.ClockExponent) {
			for _, m := range ends(p.Memory) {
				for _, f := range ends(p.VoltageFloor) {
					for _, r := range ends(p.MemoryReach) {
						for _, d := range ends(p.MemoryDraw) {
							all = append(all, physics{s, e, m, f, r, d})
						}
					}
				}
			}
		}
	}
	return all
}

// lowest clock as a share of the highest, and lowest cap as one of the default.
func (s *Settings) lowest() (clock, limit float64) {
	return s.LowestClock / s.HighestClock, s.LowestCap / s.DefaultCap
}

// Work makes a product of its prediction, whose energy it has. Where weights are on chip it has its time
// and power, too, but another clock; where they come from memory a product has a time to start
// besides, which a stack of so many matrices (1: one) that are multiplied at once shares.
func (c *Calibration) Work(p Product, r Prediction, stack int) (Work, error) {
	if r.Seconds == nil || r.Watts == nil || r.Clock == nil {
		return Work{}, errors.New("what a setting does follows from watts, seconds and a clock, and the prediction lacks one")
	}
	kernels := &c.Facts.Kernels
	p.Cold = p.Cold && p.M <= kernels.MemoryBoundTokens
	series, _ := c.nearest(p)
	w := Work{Seconds: *r.Seconds, Watts: *r.Watts, Clock: min(*r.Clock, c.highestClock())}
	if !p.Cold {
		// A product of few inputs keeps the multipliers waiting, for results, so that the same power is
		// reached at a higher clock: power goes with use·clock^ClockExponent, speed with use·clock.
		share := kernels.shareOfProducts(p) / kernels.shareOfProducts(series.Product)
		w.Clock = min(w.Clock*math.Pow(share, -1/(c.Facts.Power.ClockExponent.Usual-1)), c.highestClock())
		w.compute = w.Seconds
		return w, nil
	}
	// Time is proportional to bytes for as long as they flow. The energy stays what was predicted: what a card
	// draws in between is less than what cards of one kind differ by.
	if b := series.Baseline.Seconds; b > kernels.LaunchSeconds {
		joules := w.Watts * w.Seconds
		w.Seconds = w.Seconds*(b-kernels.LaunchSeconds)/b + kernels.LaunchSeconds/float64(max(1, stack))
		w.Watts = joules / w.Seconds
	}
	w.compute = w.Seconds
	if c.model(p.Type, false) != nil {
		warm, _ := c.nearest(Product{Type: p.Type, M: 8192, N: 8192, K: 8192, Role: p.Role})
		tile := kernels.TileTokens
		ops := float64(tile*((p.M+tile-1)/tile)) * float64(p.N) * float64(p.K)
		w.compute = min(w.Seconds, warm.Baseline.Seconds*ops/warm.work()*warm.Baseline.Clock/w.Clock)
	}
	return w, nil
}

// highestClock that was seen, in MHz.
func (c *Calibration) highestClock() (highest float64) {
	for i := range c.Series {
		highest = max(highest, c.Series[i].Baseline.Clock)
	}
	return highest
}

// Drawn is the power that a card at the calibration's limit draws, in watts: control keeps a margin.
// It is 0 where no measured product came to the limit.
func (c *Calibration) Drawn() float64 {
	var watts []float64
	for i := range c.Series {
		if b := &c.Series[i].Baseline; b.Clock < 0.95*c.highestClock() {
			watts = append(watts, b.Watts)
		}
	}
	if len(watts) == 0 {
		return 0
	}
	slices.Sort(watts)
	return watts[len(watts)/2]
}

// Reach is the lowest and the highest setting that is predicted: the calibration's own power limit and
// highest clock, and down to what such a card can be set to. A limit of 0 is not known, so none can be held.
func (c *Calibration) Reach() (lowest, highest Setting) {
	clock := math.Round(c.highestClock())
	lowestClock, lowestCap := c.Facts.Settings.lowest()
	return Setting{math.Round(lowestCap * c.PowerLimit), math.Round(lowestClock * clock)}, Setting{c.PowerLimit, clock}
}

// Extrapolates says whether a setting lies below those that were measured.
func (c *Calibration) Extrapolates(s Setting) bool {
	_, highest := c.Reach()
	return s.Cap > 0 && s.Cap < highest.Cap || s.Clock > 0 && s.Clock < highest.Clock
}

// Hold says what work takes at a setting. One clock holds for all products: they change faster than a
// card's control follows. Nothing is extrapolated at the calibration's own limit; above it nothing is
// known, which is an error, as is what lies below [Calibration.Reach]. A cap that cannot be kept is exceeded
// at the lowest clock.
func (c *Calibration) Hold(work []Work, s Setting) (Held, error) {
	lowest, highest := c.Reach()
	switch {
	case len(work) == 0:
		return Held{}, errors.New("no work to hold to a setting")
	case s.Cap < 0 || s.Clock < 0 || math.IsNaN(s.Cap+s.Clock):
		return Held{}, fmt.Errorf("a cap of %v W and a clock of %v MHz: neither may be negative", s.Cap, s.Clock)
	case s.Cap > 0 && c.PowerLimit == 0:
		return Held{}, errors.New("the calibration does not say what power limit it was measured at: make it anew with lowtoggle calibrate")
	case s.Cap > 0 && !(s.Cap >= lowest.Cap && s.Cap <= highest.Cap):
		return Held{}, fmt.Errorf("a cap of %g W: predictions for %s go from %g to %g W", s.Cap, c.Card, lowest.Cap, highest.Cap)
	case s.Clock > 0 && !(s.Clock >= lowest.Clock && s.Clock <= highest.Clock):
		return Held{}, fmt.Errorf("a clock of %g MHz: predictions for %s go from %g to %g MHz", s.Clock, c.Card, lowest.Clock, highest.Clock)
	}
	usual := c.Facts.Power.usual()
	h := c.hold(work, s, usual)
	h.JoulesInterval, h.SecondsInterval = [2]float64{h.Joules, h.Joules}, [2]float64{h.Seconds, h.Seconds}
	full := c.hold(work, Setting{}, usual)
	for _, p := range c.Facts.Power.likely() {
		o, drawn := c.hold(work, s, p), c.hold(work, Setting{}, p)
		widen(&h.JoulesInterval, o.Joules*full.Joules/drawn.Joules)
		widen(&h.SecondsInterval, o.Seconds)
	}
	return h, nil
}

func widen(to *[2]float64, v float64) { to[0], to[1] = min(to[0], v), max(to[1], v) }

// hold finds the highest clock at which the cap is kept.
func (c *Calibration) hold(work []Work, s Setting, p physics) Held {
	highest := c.highestClock()
	p.floor, p.reach = p.floor*highest, p.reach*highest
	work = slices.Clone(work)
	for i, w := range work {
		if w.compute < w.Seconds {
			work[i].Watts *= p.draw
		}
	}
	for _, w := range work {
		highest = max(highest, w.Clock)
	}
	lowest, _ := c.Facts.Settings.lowest()
	lowest *= highest
	if s.Clock > 0 {
		highest = max(lowest, min(highest, s.Clock))
	}
	h := p.at(work, highest)
	if s.Cap == 0 || s.Cap == c.PowerLimit {
		return h
	}
	limit := s.Cap / c.PowerLimit * max(c.Drawn(), p.at(work, math.Inf(1)).Watts)
	if h.Watts <= limit {
		return h
	}
	const steps = 40
	for range steps {
		middle := (lowest + highest) / 2
		if p.at(work, middle).Watts > limit {
			highest = middle
		} else {
			lowest = middle
		}
	}
	return p.at(work, lowest)
}

// at runs the work with no clock above the one given.
func (p physics) at(work []Work, clock float64) (h Held) {
	cycles := 0.0
	for _, w := range work {
		f := min(clock, w.Clock)
		seconds := w.compute * w.Clock / f
		static := min(p.static, w.Watts)
		memory := 0.0
		if w.compute < w.Seconds {
			seconds = max(w.Seconds, seconds, w.Seconds*min(p.reach, w.Clock)/f)
			memory = min(p.memory, w.Watts-static)
		}
		moving := (w.Watts - static - memory) * p.power(f) / p.power(w.Clock)
		h.Seconds += seconds
		h.Joules += (static+moving)*seconds + memory*w.Seconds
		cycles += f * seconds
	}
	h.Watts, h.Clock = h.Joules/h.Seconds, cycles/h.Seconds
	return h
}

// power at a clock, to a scale: below the floor the voltage stays.
func (p physics) power(clock float64) float64 {
	if clock < p.floor {
		return math.Pow(p.floor, p.exponent-1) * clock
	}
	return math.Pow(clock, p.exponent)
}
