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
	// Default is the card's default power limit in watts. It is only visited if it is one of the settings.
	Default  float64   `json:"default_watts"`
	Settings []Setting `json:"-"`      // settings to visit, without the reference
	Order    []Setting `json:"visits"` // settings in the order of the visits
}

// NewPlan makes a plan for a card. Without settings it takes the [Usual] power limits up to the current one. Errors:
// [power.ErrAbsent] if the card does not report its range of settings, and a *[SettingsError] if a setting is outside
// that range.
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

var errNoMachine = errors.New("a sweep needs a machine")

// Prepare checks that the card may be swept, and then makes the plan from the current power limit. It changes no
// settings. Errors are those of [Governor] and [NewPlan]. Call it while holding [LockCard], and before reading weights.
func Prepare(m measure.Machine, settings []Setting, seed uint64) (Plan, error) {
	if m == nil {
		return Plan{}, errNoMachine
	}
	governor, err := Governor(m.Card())
	if err != nil {
		return Plan{}, err
	}
	limit, err := governor.PowerLimit() // another sweep may have changed the limit since the machine was opened
	if err != nil {
		return Plan{}, err
	}
	info := m.Card().Info()
	info.PowerLimit = &limit
	return NewPlan(info, settings, seed)
}

// Original returns the settings to restore after the sweep.
func (p Plan) Original() Original {
	return Original{p.Reference.Cap, slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Clock > 0 })}
}

// AboveReference reports whether the plan sets power limits above the reference.
func (p Plan) AboveReference() bool {
	return slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Cap > p.Reference.Cap })
}

// DryRun describes the changes of settings that a sweep would make.
type DryRun struct {
	GPU       string    `json:"gpu"`
	DryRun    bool      `json:"dry_run"`         // true
	Reference float64   `json:"reference_watts"` // current power limit
	Default   float64   `json:"default_watts"`
	Visits    []Setting `json:"visits"`            // in the order of the visits
	Seconds   float64   `json:"about_seconds"`     // estimated duration
	Refused   string    `json:"refused,omitempty"` // why the sweep would be refused now
}

// DryRun returns a description of the plan. visit is the measuring time of one visit, without the time to reach the
// steady state.
func (p Plan) DryRun(card power.Card, visit time.Duration) DryRun {
	const settling = 15 * time.Second
	d := DryRun{GPU: card.Info().Name, DryRun: true, Reference: p.Reference.Cap, Default: p.Default, Visits: p.Order,
		Seconds: (time.Duration(len(p.Order)) * (visit + settling)).Seconds()}
	if err := Free(card); err != nil {
		d.Refused = err.Error()
	}
	return d
}
