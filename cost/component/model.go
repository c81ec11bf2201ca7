package component

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// Model is a card's power by component, with the readings that it was fitted to.
type Model struct {
	Version   int    `json:"components_version"`
	Card      string `json:"card"`
	CardID    string `json:"card_id,omitempty"` // empty: not recorded
	Driver    string `json:"driver,omitempty"`
	Date      string `json:"date,omitempty"`
	Command   string `json:"command,omitempty"`
	Simulated bool   `json:"simulated,omitempty"` // the figures have no meaning
	// PowerLimit is the card's power limit during the measurement, in watts; 0: unknown.
	PowerLimit float64 `json:"power_limit_watts,omitempty"`
	// FullClock is the highest clock of the multiprocessors, in MHz.
	FullClock float64 `json:"highest_clock_mhz"`
	// L2 is the size of the cache in bytes; 0: unknown.
	L2    float64 `json:"l2_bytes,omitempty"`
	Facts Facts   `json:"facts"`
	// Sensed reports whether the memory's own power was read. Otherwise HBM includes the path to memory on the chip.
	Sensed       bool          `json:"memory_sensor"`
	Coefficients []Coefficient `json:"coefficients,omitempty"`
	// Drawn is the card's power at its power limit, in watts; 0: no kernel reached the limit.
	Drawn float64 `json:"drawn_at_limit_watts,omitempty"`
	// Limits are rates of operations per second at which the card lowers its clock although power is far below the
	// limit, by type. A limit is the highest measured rate, or 0 if kernels were too short to find it. A type without
	// a limit is absent.
	Limits map[arith.Type]float64 `json:"operations_limits,omitempty"`
	// Launch is the time of an empty execution, in seconds; 0: not measured.
	Launch float64 `json:"launch_seconds,omitempty"`
	// Rates are the highest measured rates per second: operations of a type and bytes from the cache ("cache") at
	// FullClock, and bytes from memory ("memory").
	Rates    map[string]float64 `json:"highest_rates,omitempty"`
	Quality  *Quality           `json:"quality,omitempty"`
	Readings []Reading          `json:"readings"`

	terms    []term
	variants []variant
	warmth   warmth
	naive    [][]float64 // coefficients
	unseen   []Prediction
}

// Coefficient is the coefficient of a term at the highest clock.
type Coefficient struct {
	Name  string  `json:"name"`
	Part  Part    `json:"part,omitempty"`
	Value float64 `json:"value"`
	Error float64 `json:"error"` // standard error; 0 if no kernel determines the value
	Unit  string  `json:"unit"`  // W; J for an operation or a byte
}

// Reading is a measured kernel.
type Reading struct {
	Kernel
	// HeldOut kernels are not part of the fit and test it.
	HeldOut     bool     `json:"held_out,omitempty"`
	Watts       float64  `json:"watts"`
	MemoryWatts *float64 `json:"memory_watts,omitempty"` // running mean of the memory's own power
	Capped      *float64 `json:"capped_share,omitempty"`
	Waves       float64  `json:"waves,omitempty"` // waves of tiles, by the library; 0: unknown
}

// Quality holds the errors of predicted power for kernels that a fit did not use, relative to the measured power.
type Quality struct {
	// Mean and Worst are the errors of the fit's kernels, each left out in turn. Kernels that alone determine a
	// coefficient are excluded.
	Kernels     int     `json:"kernels"`
	LeftOut     int     `json:"judged"`
	Mean        float64 `json:"mean_error"`
	Worst       float64 `json:"worst_error"`
	WorstKernel string  `json:"worst_kernel"`
	// HeldOut is the number of held-out kernels.
	HeldOut      int     `json:"held_out"`
	HeldOutMean  float64 `json:"held_out_mean_error,omitempty"`
	HeldOutWorst float64 `json:"held_out_worst_error,omitempty"`
	// Span compares the model with naive models on unseen kernels below the power cap; nil without such kernels.
	// AtCap compares the clocks of held-out kernels at the cap.
	Span  *Span     `json:"below_cap,omitempty"`
	AtCap *CapClock `json:"at_cap,omitempty"`
	// Drift is the largest relative change of the power of a kernel that was measured several times.
	Drift float64 `json:"drift,omitempty"`
}

// variant is an alternative fit: to resampled readings, or with another exponent.
type variant struct {
	exponent     float64
	coefficients []float64
}

// Split is a kernel's power by component.
type Split struct {
	Watts float64 `json:"watts"`
	Error float64 `json:"standard_error"` // without the differences between cards
	Parts []Share `json:"parts"`          // in the order of [Parts]; they add up to Watts
}

// Share is a component's part of a Split.
type Share struct {
	Part  Part    `json:"part"`
	Watts float64 `json:"watts"`
	Error float64 `json:"standard_error"`
	Bits  float64 `json:"bits_watts,omitempty"` // part of Watts that depends on the operands' bits
}

// Of returns a component's share.
func (s Split) Of(p Part) Share {
	for _, share := range s.Parts {
		if share.Part == p {
			return share
		}
	}
	return Share{Part: p}
}

// Split predicts a kernel's power at its own clock. For a kernel without a time, it uses the clock that the card
// would choose. The error for a type that was not measured lists the measured types.
func (m *Model) Split(k Kernel) (Split, error) {
	if err := m.check(k); err != nil {
		return Split{}, err
	}
	if k.Seconds == 0 {
		k = m.At(k, m.Clock([]Kernel{k}))
	}
	return m.split([]Kernel{k}), nil
}

// SplitSequence predicts the power of kernels that run one after the other. If all times are known, it uses the
// kernels' own clocks, and otherwise the clock that the card would choose.
func (m *Model) SplitSequence(kernels []Kernel) (Split, error) {
	if err := m.check(kernels...); err != nil {
		return Split{}, err
	}
	if slices.ContainsFunc(kernels, func(k Kernel) bool { return k.Seconds == 0 }) {
		kernels = m.all(kernels, m.Clock(kernels))
	}
	return m.split(kernels), nil
}

// Timed distributes a measured total time in seconds over kernels, in proportion to their predicted times. clock is
// in MHz.
func (m *Model) Timed(kernels []Kernel, seconds, clock float64) []Kernel {
	list, sum := m.all(kernels, clock), 0.0
	for _, k := range list {
		sum += k.Seconds
	}
	for i := range list {
		list[i].Seconds *= seconds / sum
	}
	return list
}

func (m *Model) check(kernels ...Kernel) error {
	if len(m.variants) == 0 {
		return fmt.Errorf("the components of %s are not fitted yet: run lowtoggle calibrate --components again; it continues where it stopped", m.Card)
	}
	if len(kernels) == 0 {
		return errors.New("there are no kernels: give at least one")
	}
	for _, k := range kernels {
		if err := k.Validate(); err != nil {
			return err
		}
		if k.Type != 0 && !slices.Contains(m.Types(), k.Type) {
			return fmt.Errorf("kernel %s: the components of %s were not measured for type %s, only for %s", k.Name, m.Card, k.Type, arith.Names(m.Types()))
		}
	}
	return nil
}

// Types returns the measured types of arithmetic, in the order of the readings.
func (m *Model) Types() (types []arith.Type) {
	for _, r := range m.Readings {
		if r.Type != 0 && !r.HeldOut && !slices.Contains(types, r.Type) {
			types = append(types, r.Type)
		}
	}
	return types
}

// partsOf returns the split of kernels with known times, by a variant and without errors.
func (m *Model) partsOf(kernels []Kernel, v variant) (s Split) {
	for _, p := range Parts() {
		watts := m.watts(kernels, v, func(t *term) bool { return t.part == p })
		bits := m.watts(kernels, v, func(t *term) bool { return t.part == p && t.bits })
		s.Parts = append(s.Parts, Share{Part: p, Watts: watts, Bits: bits})
		s.Watts += watts
	}
	return s
}

// split returns the split of kernels with known times.
func (m *Model) split(kernels []Kernel) Split {
	s := m.partsOf(kernels, m.own())
	total := func(in func(*term) bool) func(variant) float64 {
		return func(v variant) float64 { return m.watts(kernels, v, in) }
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		p.Error = m.deviation(total(func(t *term) bool { return t.part == p.Part }))
	}
	// The error of the model's form is added to the error of the coefficients. Its part is unknown, so each part gets
	// a share of the variance in proportion to the part's power.
	missed, _ := m.Quality.UnseenErrors()
	const normal = 1.25 // standard deviation over mean absolute error
	form := normal * missed * s.Watts
	s.Error = elementary.Hypot(m.deviation(total(everyTerm)), form)
	for i := range s.Parts {
		p := &s.Parts[i]
		p.Error = elementary.Hypot(p.Error, form*math.Sqrt(p.Watts/s.Watts))
	}
	return s
}

// own returns the fit to all kernels with the usual exponent.
func (m *Model) own() variant { return m.variants[0] }

// watts returns the power of some terms, as the mean over kernels that run one after the other.
func (m *Model) watts(kernels []Kernel, v variant, in func(*term) bool) float64 {
	return m.joulesPerSecond(m.warmed(kernels, v), v, in)
}

// joulesPerSecond is watts for kernels with known temperatures.
func (m *Model) joulesPerSecond(kernels []Kernel, v variant, in func(*term) bool) float64 {
	var joules, seconds float64
	for i := range kernels {
		k := &kernels[i]
		for j := range m.terms {
			if t := &m.terms[j]; v.coefficients[j] != 0 && in(t) {
				joules += float64(k.Seconds * v.coefficients[j] * t.at(k, k.Clock/m.FullClock, v.exponent))
			}
		}
		seconds += k.Seconds
	}
	return joules / seconds
}

// deviation returns the standard error of a figure: the bootstrap's, combined with half of the change between the
// other exponents.
func (m *Model) deviation(of func(variant) float64) float64 {
	own := of(m.own())
	spread, mean, squares, n := 0.0, 0.0, 0.0, 0.0
	for _, v := range m.variants[1:] {
		value := of(v)
		if v.exponent != m.Facts.Clock.Exponent.Usual {
			spread = max(spread, math.Abs(value-own)/2)
			continue
		}
		n++
		mean += value
		squares += float64(value * value)
	}
	mean /= max(1, n)
	return elementary.Hypot(math.Sqrt(max(0, squares/max(1, n)-float64(mean*mean))), spread)
}
