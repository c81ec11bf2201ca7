package component

import (
	"cmp"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// Setting is what kernels take at a clock, one after the other.
type Setting struct {
	Clock   float64 `json:"clock_mhz"`
	Seconds float64 `json:"seconds"`
	Watts   float64 `json:"watts"`
	Joules  float64 `json:"joules"`
}

// EDP is the energy-delay product.
func (s Setting) EDP() float64 { return s.Joules * s.Seconds }

// Choice is a clock to hold the card to, beside the one that it chooses by itself.
type Choice struct {
	Setting
	Energy float64 `json:"relative_energy"`
	Time   float64 `json:"relative_time"`
	EDP    float64 `json:"relative_edp"`
	// EnergyError is the standard error of Energy, and so of EDP.
	EnergyError float64 `json:"relative_energy_standard_error"`
	// Extrapolated clocks are below all at which kernels of the kind were measured: of the same arithmetic, and
	// bound by memory or not.
	Extrapolated bool `json:"extrapolated,omitempty"`
}

// Advice is what lower clocks would do for kernels of a phase. All of it is predicted.
type Advice struct {
	Phase string `json:"phase"`
	// Default is the card left to itself.
	Default Setting `json:"default"`
	// Within1 and Within5 are the clocks of least energy that take at most 1 and 5 % longer, LeastEDP that
	// of the least energy-delay product. Where nothing is to be gained they are the default.
	Within1  Choice `json:"within_1_percent"`
	Within5  Choice `json:"within_5_percent"`
	LeastEDP Choice `json:"least_edp"`
	// Curve is every clock that was looked at, from high to low.
	Curve []Setting `json:"curve"`
}

const (
	losesFirst = 0.01
	losesMore  = 0.05
	// reach is how far below the clocks at which such kernels were measured one is advised: further down nobody
	// knows how slow a clock still keeps memory busy, nor how low the voltage goes.
	reach = 0.8
	// same is how close two savings must be to be called the same. Their errors have the model's in common.
	same = 0.003
)

// Advise looks for clocks of least energy below what the card chooses, in the card's steps, down to 20 % less than
// any at which such kernels were measured; the curve goes on to the card's LowestAdvised. A model that is an [ErrUnfit] gives none.
func (m *Model) Advise(phase string, kernels []Kernel) (*Advice, error) {
	if err := cmp.Or(m.check(kernels...), m.Verdict()); err != nil {
		return nil, err
	}
	a := &Advice{Phase: phase, Default: m.setting(kernels, m.Clock(kernels))}
	a.Curve = []Setting{a.Default}
	step := m.Facts.Clock.Step
	for clock := step * math.Ceil(a.Default.Clock/step-1); clock >= m.Facts.Clock.LowestAdvised; clock -= step {
		a.Curve = append(a.Curve, m.setting(kernels, clock))
	}
	energy := func(s Setting) float64 { return s.Joules }
	a.Within1 = m.choose(kernels, a, 1+losesFirst, energy)
	a.Within5 = m.choose(kernels, a, 1+losesMore, energy)
	a.LeastEDP = m.choose(kernels, a, math.Inf(1), Setting.EDP)
	return a, nil
}

func (m *Model) setting(kernels []Kernel, clock float64) Setting {
	s := Setting{Clock: clock}
	at := m.all(kernels, clock)
	for _, k := range at {
		s.Seconds += k.Seconds
	}
	s.Watts = m.watts(at, m.own(), func(*term) bool { return true })
	s.Joules = s.Watts * s.Seconds
	return s
}

// choose the least setting of the curve that takes no more than a factor of the default's time.
func (m *Model) choose(kernels []Kernel, a *Advice, time float64, of func(Setting) float64) Choice {
	best := a.Default
	lowest := m.lowestLike(kernels)
	for _, s := range a.Curve {
		if s.Clock >= reach*lowest && s.Seconds <= time*a.Default.Seconds && of(s) < of(best) {
			best = s
		}
	}
	c := Choice{Setting: best, Energy: best.Joules / a.Default.Joules, Time: best.Seconds / a.Default.Seconds,
		Extrapolated: best.Clock < min(lowest, a.Default.Clock)}
	c.EDP = c.Energy * c.Time
	here, there := m.all(kernels, a.Default.Clock), m.all(kernels, best.Clock)
	c.EnergyError = m.deviation(func(v variant) float64 {
		every := func(*term) bool { return true }
		return m.watts(there, v, every) / m.watts(here, v, every) * c.Time
	})
	return c
}

// LowestMeasured is the lowest clock among the readings of the fit, in MHz.
func (m *Model) LowestMeasured() float64 {
	lowest := math.Inf(1)
	for _, r := range m.Readings {
		if !r.HeldOut {
			lowest = min(lowest, r.Clock)
		}
	}
	return lowest
}

// lowestLike is the lowest clock among readings of the fit like these kernels: of a type of theirs, and bound by
// memory or not, as most of their time is. Nothing is known of clocks where there are none: then it is infinite.
func (m *Model) lowestLike(kernels []Kernel) float64 {
	types := map[arith.Type]bool{}
	var bound, all float64
	for _, k := range m.all(kernels, m.FullClock) {
		types[k.Type] = true
		all += k.Seconds
		if m.memoryBound(k) {
			bound += k.Seconds
		}
	}
	lowest := math.Inf(1)
	for _, r := range m.Readings {
		if !r.HeldOut && types[r.Type] && m.memoryBound(r.Kernel) == (bound > all/2) {
			lowest = min(lowest, r.Clock)
		}
	}
	return lowest
}

// memoryBound says whether memory takes longer with a kernel, whose time is known, than what follows the clock.
func (m *Model) memoryBound(k Kernel) bool {
	rate := m.Rates["memory"]
	half := math.Pow(0.5, 1/m.Facts.Clock.Overlap) // of the sum of both, as times add up
	return rate > 0 && m.Facts.Clock.MemoryTime*k.Memory/rate > half*k.Seconds
}

// worth is a saving that is more than the model's error, and than half a per cent.
func (c Choice) worth() bool { return 1-c.Energy > max(0.005, 2*c.EnergyError) }

// Text says the advice in sentences.
func (a *Advice) Text() []string {
	text := []string{fmt.Sprintf("%s: left to itself the card runs at %.0f MHz and %.0f W", a.Phase, a.Default.Clock, a.Default.Watts)}
	for _, c := range []struct {
		Choice
		loss string
	}{{a.Within1, "1 %"}, {a.Within5, "5 %"}} {
		if !c.worth() {
			text = append(text, fmt.Sprintf("%s: for at most %s of time a lower clock saves nothing that this model can tell", a.Phase, c.loss))
			continue
		}
		text = append(text, fmt.Sprintf("%s: for at most %s of time %.0f MHz saves most: energy %s ± %.1f, time %s%s",
			a.Phase, c.loss, c.Clock, change(c.Energy), 196*c.EnergyError, change(c.Time), c.reservation()))
	}
	if c := a.LeastEDP; 1-c.EDP > max(0.005, 2*c.EnergyError) {
		return append(text, fmt.Sprintf("%s: the energy-delay product is least at %.0f MHz: %s, energy %s, time %s%s",
			a.Phase, c.Clock, change(c.EDP), change(c.Energy), change(c.Time), c.reservation()))
	}
	return append(text, fmt.Sprintf("%s: the energy-delay product is least, as far as this model can tell, where the card runs by itself", a.Phase))
}

func (c Choice) reservation() string {
	if c.Extrapolated {
		return " (extrapolated: nothing like it was measured at so low a clock)"
	}
	return ""
}

// Contrast says what a transform changes about the advice: before and after are of the same layers.
func Contrast(before, after *Advice) []string {
	was, is := before.Default, after.Default
	text := []string{fmt.Sprintf("%s: the transform changes energy by %s, time by %s; the clock goes from %.0f to %.0f MHz, power from %.0f to %.0f W",
		before.Phase, change(is.Joules/was.Joules), change(is.Seconds/was.Seconds), was.Clock, is.Clock, was.Watts, is.Watts)}
	c, d := before.Within5, after.Within5
	switch {
	case !c.worth() && !d.worth():
		return append(text, before.Phase+": neither before nor after it has a lower clock, for at most 5 % of time, anything to save that this model can tell")
	case math.Abs(c.Energy-d.Energy) <= same:
		return append(text, fmt.Sprintf("%s: what a lower clock saves for at most 5 %% of time stays the same: %s before, %s after", before.Phase, change(c.Energy), change(d.Energy)))
	case d.Energy > c.Energy:
		text = append(text, fmt.Sprintf("%s: it leaves less to a lower clock: for at most 5 %% of time %s before, %s after", before.Phase, change(c.Energy), change(d.Energy)))
	default:
		text = append(text, fmt.Sprintf("%s: it leaves more to a lower clock: for at most 5 %% of time %s before, %s after", before.Phase, change(c.Energy), change(d.Energy)))
	}
	both := d.Joules / was.Joules
	return append(text, fmt.Sprintf("%s: both together change energy by %s and time by %s", before.Phase, change(both), change(d.Seconds/was.Seconds)))
}

// change writes a ratio as a change.
func change(ratio float64) string {
	v := 100 * (ratio - 1)
	if math.Abs(v) < 0.05 {
		return "0.0 %"
	}
	if v < 0 {
		return fmt.Sprintf("−%.1f %%", -v)
	}
	return fmt.Sprintf("+%.1f %%", v)
}
