package paper

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/bench/experiment"
)

// Effect is the measured change that decides whether a takeaway holds in one setup.
type Effect struct {
	Setup experiment.Setup
	// Energy is the relative change of a product's energy: −0.1 is a tenth less. NaN if the takeaway is about power
	// only.
	Energy    float64
	HalfWidth float64 // of Energy's 95 % interval; NaN: not known
	Power     float64 // relative change of the mean power
	Where     string  // what was compared, if the rule leaves it open
	Outcome   Outcome
}

// Outcome says whether a takeaway holds in a setup.
type Outcome string

// The outcomes.
const (
	Holds Outcome = "holds"
	Fails Outcome = "does not hold"
	Open  Outcome = "undecided" // the interval is not known, or includes both outcomes
)

// MarshalJSON leaves out unknown fields.
func (e Effect) MarshalJSON() ([]byte, error) {
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	return json.Marshal(struct {
		Setup     string   `json:"setup"`
		Energy    *float64 `json:"energy,omitempty"`
		HalfWidth *float64 `json:"half_width,omitempty"`
		Power     *float64 `json:"power,omitempty"`
		Where     string   `json:"where,omitempty"`
		Outcome   Outcome  `json:"outcome"`
	}{e.Setup.String(), known(e.Energy), known(e.HalfWidth), known(e.Power), e.Where, e.Outcome})
}

// change is the effect of going from one result to another of the same setup.
func change(from, to Result) Effect {
	ratio := to.Relative / from.Relative
	return Effect{
		Setup:     to.Setup,
		Energy:    ratio - 1,
		HalfWidth: ratio * math.Hypot(from.HalfWidth/from.Relative, to.HalfWidth/to.Relative),
		Power:     to.Watts/from.Watts - 1,
	}
}

// falls decides that the takeaway holds if the energy falls by more than the interval.
func (e Effect) falls() Effect {
	e.Outcome = outcome(-e.Energy, e.HalfWidth)
	return e
}

// rises decides that the takeaway holds if the energy rises by more than the interval.
func (e Effect) rises() Effect {
	e.Outcome = outcome(e.Energy, e.HalfWidth)
	return e
}

func (e Effect) where(format string, args ...any) Effect {
	e.Where = fmt.Sprintf(format, args...)
	return e
}

func outcome(margin, halfWidth float64) Outcome {
	switch {
	case margin > halfWidth:
		return Holds
	case -margin > halfWidth:
		return Fails
	}
	return Open
}
