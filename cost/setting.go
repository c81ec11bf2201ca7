package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// Setting is a power limit and a clock limit of a card. A field of 0 stands for the card's default.
type Setting struct {
	Cap   float64 `json:"cap_watts,omitempty"` // power limit
	Clock float64 `json:"clock_mhz,omitempty"` // highest clock of the multiprocessors
}

// Work is a product as the card runs it at its calibration's settings.
type Work struct {
	Seconds, Watts, Clock float64
	// compute is the time in seconds that the multipliers need at Clock. If memory is the bottleneck, it is less than
	// Seconds.
	compute float64
}

// Outcome is the predicted energy, time, power and mean clock of work at a setting, with one product after the other.
// The intervals describe the uncertainty of extrapolating from the calibration's settings. They are for ratios to the
// work at these settings, where they have no width.
type Outcome struct {
	Joules, Seconds, Watts, Clock   float64
	JoulesInterval, SecondsInterval [2]float64
}

// physics is one choice of a [PowerLaw]'s values, for extrapolation below the measured clock.
type physics struct {
	static   float64 // watts
	exponent float64 // of the clock, for power that is not static
	memory   float64 // watts of reading weights at full rate, for every clock
	floor    float64 // share of the highest clock below which the voltage is constant
	reach    float64 // share of the highest clock below which multiprocessors read too slowly to keep the memory busy
	draw     float64 // power while waiting for memory, relative to the predicted power
}

func (p *PowerLaw) usual() physics {
	return physics{p.Static.Usual, p.ClockExponent.Usual, p.Memory.Usual, p.VoltageFloor.Usual, p.MemoryReach.Usual, p.MemoryDraw.Usual}
}

// likely returns all combinations of the lowest and the highest values.
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

// lowest returns the lowest clock relative to the highest, and the lowest cap relative to the default.
func (s *Settings) lowest() (clock, limit float64) {
	return s.LowestClock / s.HighestClock, s.LowestCap / s.DefaultCap
}

// Work derives a product's work from its prediction, with the same energy. A product with weights on chip keeps its
// time and power too, but not its clock. A product with weights from memory has an additional time to start. All
// matrices of a stack are multiplied in one launch and share this time; a stack of 1 is a single matrix.
func (c *Calibration) Work(p Product, r Prediction, stack int) (Work, error) {
	if r.Seconds == nil || r.Watts == nil {
		return Work{}, errors.New("the effect of a power cap or clock cannot be computed: the prediction has no power or no time")
	}
	if r.Clock == nil {
		return Work{}, fmt.Errorf("the effect of a power cap or clock cannot be computed: the calibration of %s has no clocks: measure clocks as well (clock_mhz) and run lowtoggle calibrate again", c.Card)
	}
	kernels := &c.Facts.Kernels
	p.Cold = p.Cold && p.M <= kernels.MemoryBoundTokens
	series, _ := c.nearest(p)
	w := Work{Seconds: *r.Seconds, Watts: *r.Watts, Clock: min(*r.Clock, c.highestClock())}
	if !p.Cold {
		w.Clock = min(w.Clock*c.clockOfShape(p, series), c.highestClock())
		w.compute = w.Seconds
		return w, nil
	}
	// The time to read is proportional to bytes. The predicted energy is kept, because the energy between two reads
	// is smaller than the difference between cards of one kind.
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

// clockOfShape returns the clock at the power limit of a product with weights on chip, relative to that of the product
// of a series. With few inputs the multipliers wait for results, so the card reaches the same power at a higher clock:
// power grows with use·clock^ClockExponent, and speed with use·clock.
func (c *Calibration) clockOfShape(p Product, s *Series) float64 {
	kernels := &c.Facts.Kernels
	share := kernels.shareOfProducts(p) / kernels.shareOfProducts(s.Product)
	return elementary.Pow(share, -1/(c.Facts.Power.ClockExponent.Usual-1))
}

// highestClock is the highest measured clock, in MHz.
func (c *Calibration) highestClock() (highest float64) {
	for i := range c.Series {
		highest = max(highest, c.Series[i].Baseline.Clock)
	}
	return highest
}

// slowed reports whether the card lowered its clock for a baseline.
func (c *Calibration) slowed(b *Baseline) bool { return b.Clock < 0.95*c.highestClock() }

// Drawn returns the power, in watts, of a card at the calibration's power limit. It is a little below the limit,
// because the card's control keeps a margin. If no measured product reached the limit, it is 0.
func (c *Calibration) Drawn() float64 {
	var watts []float64
	for i := range c.Series {
		if b := &c.Series[i].Baseline; c.slowed(b) {
			watts = append(watts, b.Watts)
		}
	}
	if len(watts) == 0 {
		return 0
	}
	slices.Sort(watts)
	return watts[len(watts)/2]
}

// Reach returns the lowest and the highest setting that can be predicted: from the card's lowest settings to the
// calibration's own power limit and highest clock. A cap of 0 is unknown.
func (c *Calibration) Reach() (lowest, highest Setting) {
	clock := math.Round(c.highestClock())
	lowestClock, lowestCap := c.Facts.Settings.lowest()
	return Setting{math.Round(lowestCap * c.PowerLimit), math.Round(lowestClock * clock)}, Setting{c.PowerLimit, clock}
}

// Extrapolates reports whether a setting lies below the measured settings.
func (c *Calibration) Extrapolates(s Setting) bool {
	_, highest := c.Reach()
	return s.Cap > 0 && s.Cap < highest.Cap || s.Clock > 0 && s.Clock < highest.Clock
}

// AtSetting predicts work at a setting. All products run at one clock, because they alternate faster than the card's
// control follows. A setting outside of [Calibration.Reach] is an error. If no clock keeps the cap, the outcome is
// for the lowest clock.
func (c *Calibration) AtSetting(work []Work, s Setting) (Outcome, error) {
	lowest, highest := c.Reach()
	switch {
	case len(work) == 0:
		return Outcome{}, errors.New("there is no work to predict: give at least one product")
	case s.Cap < 0 || s.Clock < 0 || math.IsNaN(s.Cap+s.Clock):
		return Outcome{}, fmt.Errorf("a cap of %v W and a clock of %v MHz: neither may be negative", s.Cap, s.Clock)
	case s.Cap > 0 && c.PowerLimit == 0:
		return Outcome{}, errors.New("the power limit of the calibration's measurements is unknown: add power_limit_watts, the card's limit in watts, to the calibration's file")
	case s.Cap > 0 && !(s.Cap >= lowest.Cap && s.Cap <= highest.Cap):
		return Outcome{}, fmt.Errorf("energy and time cannot be predicted at a cap of %g W: for %s, give a cap from %g to %g W", s.Cap, c.Card, lowest.Cap, highest.Cap)
	case s.Clock > 0 && !(s.Clock >= lowest.Clock && s.Clock <= highest.Clock):
		return Outcome{}, fmt.Errorf("energy and time cannot be predicted at a clock of %g MHz: for %s, give a clock from %g to %g MHz", s.Clock, c.Card, lowest.Clock, highest.Clock)
	}
	usual := c.Facts.Power.usual()
	h := c.at(work, s, usual)
	h.JoulesInterval, h.SecondsInterval = [2]float64{h.Joules, h.Joules}, [2]float64{h.Seconds, h.Seconds}
	full := c.at(work, Setting{}, usual)
	for _, p := range c.Facts.Power.likely() {
		o, drawn := c.at(work, s, p), c.at(work, Setting{}, p)
		widen(&h.JoulesInterval, o.Joules*full.Joules/drawn.Joules)
		widen(&h.SecondsInterval, o.Seconds)
	}
	return h, nil
}

func widen(to *[2]float64, v float64) { to[0], to[1] = min(to[0], v), max(to[1], v) }

// at runs the work at the highest clock that keeps the setting's cap.
func (c *Calibration) at(work []Work, s Setting, p physics) Outcome {
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

// at runs the work at the given clock or lower.
func (p physics) at(work []Work, clock float64) (h Outcome) {
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
		h.Joules += float64((static+moving)*seconds) + float64(memory*w.Seconds)
		cycles += float64(f * seconds)
	}
	h.Watts, h.Clock = h.Joules/h.Seconds, cycles/h.Seconds
	return h
}

// power returns the power at a clock, up to a factor. Below the floor the voltage is constant.
func (p physics) power(clock float64) float64 {
	if clock < p.floor {
		return elementary.Pow(p.floor, p.exponent-1) * clock
	}
	return elementary.Pow(clock, p.exponent)
}
