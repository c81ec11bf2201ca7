package sweep

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Plan is what a sweep is going to set.
type Plan struct {
	// Reference is the power limit that is set now: what the original takes there all else is relative to.
	Reference Setting `json:"reference"`
	// Default power limit of the card, in watts. It is not visited unless it is among the settings.
	Default  float64   `json:"default_watts"`
	Settings []Setting `json:"-"`      // without the reference
	Order    []Setting `json:"visits"` // in the order of time
}

// Usual power limits: 8 steps from two fifths of the reference, or from the lowest that can be set where that is
// above, to the reference. Lower limits cost much time, and predictions know hardly anything of them.
func Usual(lowest, reference float64) []Setting {
	return Caps(max(lowest, math.Round(0.04*reference)*10), reference, 8)
}

// NewPlan of settings for a card; none means [Usual] power limits below the one that is set. It
// fails where the card cannot be set so, or does not say what it can be set to.
func NewPlan(card power.Info, settings []Setting, seed uint64) (Plan, error) {
	if card.PowerLimit == nil || card.PowerLimitMin == nil || card.PowerLimitMax == nil || card.PowerLimitPreset == nil {
		return Plan{}, fmt.Errorf("%s does not say what power limits it can be set to: %w", card.Name, power.ErrAbsent)
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
	can := Reach{LowestCap: *card.PowerLimitMin, HighestCap: *card.PowerLimitMax, HighestClock: math.Inf(1)}
	if card.MinSMClock != nil {
		can.LowestClock = *card.MinSMClock
	}
	if card.MaxSMClock != nil {
		can.HighestClock = *card.MaxSMClock
	}
	return p, can.Check(card.Name+" can be set", p.Settings)
}

// Original is what is put back after the plan was carried out.
func (p Plan) Original() Original {
	return Original{p.Reference.Cap, slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Clock > 0 })}
}

// ErrHeld means that the card is not ours alone to set.
var ErrHeld = errors.New("the card is not this sweep's alone to set")

// Governor of a card that is ours alone to set, and that this process may set. It fails with [ErrHeld], or as
// [power.Govern] does. Nothing is changed.
func Governor(card power.Card) (power.Governor, error) {
	if err := Free(card); err != nil {
		return nil, err
	}
	return power.Govern(card)
}

// Free fails unless a card is ours alone to set: with [ErrHeld], or where that cannot be found out. It sets
// nothing, so it does not know whether this process may.
func Free(card power.Card) error { return refuse(card, os.Getpid()) }

// refuse fails where others would notice a change of the card's settings, or have set it themselves.
// self is this process's number.
func refuse(card power.Card, self int) error {
	if mig := card.Info().MIG; mig != nil && *mig {
		return fmt.Errorf("the card is cut into slices (MIG), which share its settings: %w", ErrHeld)
	}
	if err := alone(card, self); err != nil {
		return err
	}
	if used := card.Info().MemoryUsed; used != nil && *used > ownMemory {
		return fmt.Errorf("%.1f GB of the card's memory were in use before anything was put there: another process, which the driver does not show here (in a container it may not), would run at other settings too: end it first: %w",
			float64(*used)/1e9, ErrHeld)
	}
	reasons, err := card.Throttle()
	if err == nil && reasons&power.ApplicationClocks != 0 {
		return clocksHeld()
	}
	return nil
}

// ownMemory is more than a driver and a context of ours take, in bytes.
const ownMemory = 4e9

// alone fails where another process is on the card.
func alone(card power.Card, self int) error {
	all, err := card.Processes()
	if err != nil && !errors.Is(err, power.ErrAbsent) {
		return fmt.Errorf("who else is on the card cannot be found out: %w", err)
	}
	if rest := power.Others(all, self); len(rest) > 0 {
		return fmt.Errorf("another process is on the card (%d), and would run at other settings too: end it first: %w", rest[0].PID, ErrHeld)
	}
	return nil
}

// listed says whether the driver shows this process among those on the card: where it does not, it may not
// show others either.
func listed(card power.Card, self int) bool {
	all, _ := card.Processes()
	return slices.ContainsFunc(all, func(p power.Process) bool { return p.PID == self })
}

func clocksHeld() error {
	return fmt.Errorf("somebody has set the card's clocks, and to what cannot be read, so they could not be put back: reset them first (nvidia-smi -rgc, nvidia-smi -rac): %w", ErrHeld)
}
