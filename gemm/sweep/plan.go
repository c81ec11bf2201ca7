package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Plan holds the settings of a sweep and their order.
type Plan struct {
	// Reference is the present power limit. All results are relative to the original weights at this limit.
	Reference Setting `json:"reference"`
	// Default is the card's default power limit, in watts. It is only visited if it is among the settings.
	Default  float64   `json:"default_watts"`
	Settings []Setting `json:"-"`      // without the reference
	Order    []Setting `json:"visits"` // in the order of time
}

// NewPlan makes a plan for a card. Without settings it takes the [Usual] power limits up to the one that is set. Errors:
// [power.ErrAbsent] if the card does not report its range of settings, a *[SettingsError] if a setting is outside the range.
func NewPlan(card power.Info, settings []Setting, seed uint64) (Plan, error) {
	if card.PowerLimit == nil || card.PowerLimitMin == nil || card.PowerLimitMax == nil || card.PowerLimitPreset == nil {
		return Plan{}, fmt.Errorf("%s does not report its range of power limits: %w", card.Name, power.ErrAbsent)
	}
	p := Plan{Reference: Setting{Cap: *card.PowerLimit}, Default: *card.PowerLimitPreset}
	if len(settings) == 0 {
		settings = Usual(*card.PowerLimitMin, p.Reference.Cap)
	}
	for _, s := range settings {
		if s != (Setting{}) && s != p.Reference && !slices.Contains(p.Settings, s) {
			p.Settings = append(p.Settings, s)
		}
	}
	p.Order = Order(p.Reference, p.Settings, seed)
	can := Range{LowestCap: *card.PowerLimitMin, HighestCap: *card.PowerLimitMax, HighestClock: math.Inf(1)}
	if card.MinSMClock != nil {
		can.LowestClock = *card.MinSMClock
	}
	if card.MaxSMClock != nil {
		can.HighestClock = *card.MaxSMClock
	}
	return p, can.Check(card.Name+" can be set", p.Settings)
}

var errNoMachine = errors.New("no machine was given to sweep")

// Prepare makes the plan from the power limit that is set now, after it has checked that the card may be swept; see
// [Governor] and [NewPlan] for errors. Nothing is changed. Call it under [LockCard], and before weights are read.
func Prepare(m measure.Machine, settings []Setting, seed uint64) (Plan, error) {
	if m == nil {
		return Plan{}, errNoMachine
	}
	governor, err := Governor(m.Card())
	if err != nil {
		return Plan{}, err
	}
	limit, err := governor.PowerLimit() // another sweep may have changed it since the machine was opened
	if err != nil {
		return Plan{}, err
	}
	info := m.Card().Info()
	info.PowerLimit = &limit
	return NewPlan(info, settings, seed)
}

// Original returns the settings to restore after the plan.
func (p Plan) Original() Original {
	return Original{p.Reference.Cap, slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Clock > 0 })}
}

// AboveReference reports whether the plan sets power limits above the reference.
func (p Plan) AboveReference() bool {
	return slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Cap > p.Reference.Cap })
}

// DryRun describes the changes of settings of a sweep.
type DryRun struct {
	GPU       string    `json:"gpu"`
	DryRun    bool      `json:"dry_run"`         // true
	Reference float64   `json:"reference_watts"` // the limit that is set
	Default   float64   `json:"default_watts"`
	Visits    []Setting `json:"visits"`            // in the order of time
	Seconds   float64   `json:"about_seconds"`     // that it would take
	Refused   string    `json:"refused,omitempty"` // why it would be refused now
}

// DryRun returns a description of the plan. visit is the measuring time of a visit; waiting for the steady state takes additional
// time.
func (p Plan) DryRun(card power.Card, visit time.Duration) DryRun {
	const settling = 15 * time.Second
	d := DryRun{GPU: card.Info().Name, DryRun: true, Reference: p.Reference.Cap, Default: p.Default, Visits: p.Order,
		Seconds: (time.Duration(len(p.Order)) * (visit + settling)).Seconds()}
	if err := Free(card); err != nil {
		d.Refused = err.Error()
	}
	return d
}
