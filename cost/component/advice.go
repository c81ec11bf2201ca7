package component

import (
	"cmp"
	"fmt"
	"math"
)

// Setting is the time, power and energy of a sequence of kernels at a clock.
type Setting struct {
	Clock   float64 `json:"clock_mhz"`
	Seconds float64 `json:"seconds"`
	Watts   float64 `json:"watts"`
	Joules  float64 `json:"joules"`
}

// EDP returns the energy-delay product in joule seconds.
func (s Setting) EDP() float64 { return s.Joules * s.Seconds }

// Choice is a clock limit, compared with the clock that the card chooses by itself.
type Choice struct {
	Setting
	Energy float64 `json:"relative_energy"`
	Time   float64 `json:"relative_time"`
	EDP    float64 `json:"relative_edp"`
	// EnergyError is the standard error of Energy, and of EDP.
	EnergyError float64 `json:"relative_energy_standard_error"`
	// Extrapolated is true for a clock below all measured clocks of similar kernels. Similar kernels have the same
	// arithmetic and the same bottleneck.
	Extrapolated bool `json:"extrapolated,omitempty"`
}

// Advice holds the predicted effect of lower clocks on the kernels of a phase.
type Advice struct {
	Phase string `json:"phase"`
	// Default is the setting at the clock that the card chooses.
	Default Setting `json:"default"`
	// Within1 and Within5 are the clocks of least energy that take at most 1 % and 5 % longer. LeastEDP is the clock
	// of the least energy-delay product. If no clock saves energy, they are the default clock.
	Within1  Choice `json:"within_1_percent"`
	Within5  Choice `json:"within_5_percent"`
	LeastEDP Choice `json:"least_edp"`
	// Settings are all considered clocks, from high to low.
	Settings []Setting `json:"curve"`
}

const (
	losesFirst = 0.01
	losesMore  = 0.05
	// reach limits advice to clocks of at least this share of the lowest measured clock of similar kernels. At lower
	// clocks, memory may no longer be busy, and the voltage is unknown.
	reach = 0.8
	// same is the largest difference between two savings that are reported as equal. Both have the same model error.
	same = 0.003
)

// Advise finds the clocks of least energy below the card's own clock. It tries the card's steps down to 20 % below
// the lowest measured clock of similar kernels. Settings continue to the card's LowestAdvised. The error is an
// [ErrUnfit] with the reason if predictions of unseen kernels, or of unseen kernels like these, are inaccurate or
// missing.
func (m *Model) Advise(phase string, kernels []Kernel) (*Advice, error) {
	if err := m.check(kernels...); err != nil {
		return nil, err
	}
	if err := cmp.Or(m.Verdict(), m.trust(kernels)); err != nil {
		return nil, err
	}
	a := &Advice{Phase: phase, Default: m.setting(kernels, m.Clock(kernels))}
	a.Settings = []Setting{a.Default}
	step := m.Facts.Clock.Step
	for clock := step * math.Ceil(a.Default.Clock/step-1); clock >= m.Facts.Clock.LowestAdvised; clock -= step {
		a.Settings = append(a.Settings, m.setting(kernels, clock))
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
	s.Watts = m.watts(at, m.own(), everyTerm)
	s.Joules = s.Watts * s.Seconds
	return s
}

// choose returns the setting with the least value of of, among the settings that take at most time times the
// default's time.
func (m *Model) choose(kernels []Kernel, a *Advice, time float64, of func(Setting) float64) Choice {
	best := a.Default
	lowest := m.lowestLike(kernels)
	for _, s := range a.Settings {
		if s.Clock >= reach*lowest && s.Seconds <= time*a.Default.Seconds && of(s) < of(best) {
			best = s
		}
	}
	c := Choice{Setting: best, Energy: best.Joules / a.Default.Joules, Time: best.Seconds / a.Default.Seconds,
		Extrapolated: best.Clock < min(lowest, a.Default.Clock)}
	c.EDP = c.Energy * c.Time
	here, there := m.all(kernels, a.Default.Clock), m.all(kernels, best.Clock)
	c.EnergyError = m.deviation(func(v variant) float64 {
		return m.watts(there, v, everyTerm) / m.watts(here, v, everyTerm) * c.Time
	})
	return c
}

// LowestMeasured returns the lowest clock among the readings of the fit, in MHz.
func (m *Model) LowestMeasured() float64 {
	lowest := math.Inf(1)
	for _, r := range m.Readings {
		if !r.HeldOut {
			lowest = min(lowest, r.Clock)
		}
	}
	return lowest
}

// lowestLike returns the lowest clock among the fit's readings of similar kernels; infinity if there are none.
func (m *Model) lowestLike(kernels []Kernel) float64 {
	alike, _ := m.alike(kernels)
	lowest := math.Inf(1)
	for _, r := range m.Readings {
		if !r.HeldOut && alike(&r.Kernel) {
			lowest = min(lowest, r.Clock)
		}
	}
	return lowest
}

// memoryBound reports whether a kernel takes longer in memory than on the chip, at the highest measured rates.
func (m *Model) memoryBound(k Kernel) bool {
	memory := 0.0
	if rate := m.Rates["memory"]; rate > 0 {
		memory = k.Memory / rate
	}
	return memory > m.onChip(&k)*m.FullClock/cmp.Or(k.Clock, m.FullClock)
}

// worth reports whether the saving exceeds the model's error and 0.5 %.
func (c Choice) worth() bool { return 1-c.Energy > max(0.005, 2*c.EnergyError) }

// Text returns the advice in sentences.
func (a *Advice) Text() []string {
	text := []string{fmt.Sprintf("%s: by default the card runs at %.0f MHz and %.0f W", a.Phase, a.Default.Clock, a.Default.Watts)}
	for _, c := range []struct {
		Choice
		loss string
	}{{a.Within1, "1 %"}, {a.Within5, "5 %"}} {
		if !c.worth() {
			text = append(text, fmt.Sprintf("%s: with at most %s more time, no lower clock saves more energy than the model's error", a.Phase, c.loss))
			continue
		}
		text = append(text, fmt.Sprintf("%s: with at most %s more time, %.0f MHz saves the most energy: energy %s ± %.1f, time %s%s",
			a.Phase, c.loss, c.Clock, change(c.Energy), 196*c.EnergyError, change(c.Time), c.reservation()))
	}
	if c := a.LeastEDP; 1-c.EDP > max(0.005, 2*c.EnergyError) {
		return append(text, fmt.Sprintf("%s: the energy-delay product is lowest at %.0f MHz: %s (energy %s, time %s)%s",
			a.Phase, c.Clock, change(c.EDP), change(c.Energy), change(c.Time), c.reservation()))
	}
	return append(text, fmt.Sprintf("%s: no lower clock improves the energy-delay product by more than the model's error", a.Phase))
}

func (c Choice) reservation() string {
	if c.Extrapolated {
		return " (extrapolated: no similar kernel was measured at a clock this low)"
	}
	return ""
}

// Contrast returns sentences that compare the advice before and after a conversion. before and after are for the same
// layers. If either is nil, there are no sentences.
func Contrast(before, after *Advice) []string {
	if before == nil || after == nil {
		return nil
	}
	was, is := before.Default, after.Default
	text := []string{fmt.Sprintf("%s: the conversion changes energy by %s, time by %s; the clock goes from %.0f to %.0f MHz, power from %.0f to %.0f W",
		before.Phase, change(is.Joules/was.Joules), change(is.Seconds/was.Seconds), was.Clock, is.Clock, was.Watts, is.Watts)}
	c, d := before.Within5, after.Within5
	switch {
	case !c.worth() && !d.worth():
		return append(text, before.Phase+": with at most 5 % more time, no lower clock saves more energy than the model's error, before or after the conversion")
	case math.Abs(c.Energy-d.Energy) <= same:
		return append(text, fmt.Sprintf("%s: with at most 5 %% more time, a lower clock saves about as much energy after the conversion (%[3]s) as before (%[2]s)", before.Phase, change(c.Energy), change(d.Energy)))
	case d.Energy > c.Energy:
		text = append(text, fmt.Sprintf("%s: with at most 5 %% more time, a lower clock saves less energy after the conversion (%[3]s) than before (%[2]s)", before.Phase, change(c.Energy), change(d.Energy)))
	default:
		text = append(text, fmt.Sprintf("%s: with at most 5 %% more time, a lower clock saves more energy after the conversion (%[3]s) than before (%[2]s)", before.Phase, change(c.Energy), change(d.Energy)))
	}
	both := d.Joules / was.Joules
	return append(text, fmt.Sprintf("%s: the conversion and the lower clock together change energy by %s and time by %s", before.Phase, change(both), change(d.Seconds/was.Seconds)))
}

// change formats a ratio as a change in per cent.
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
