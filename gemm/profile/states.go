package profile

import (
	"slices"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// State of the card over a stretch of the runs, on average; what is nil was not asked for then.
type State struct {
	At          time.Duration `json:"-"` // the middle of the stretch
	SMClock     *float64      `json:"clock_mhz,omitempty"`
	Temperature *float64      `json:"temperature_c,omitempty"`
	Capped      *float64      `json:"capped_share,omitempty"` // of the times it was asked
}

// stateStep is how long a stretch is: shorter than stateEvery, as many runs together ask more often.
const stateStep = 20 * time.Millisecond

// meanStates of runs from shortly before their work to the moment given.
func meanStates(runs []*run, to time.Duration) []State {
	const before = lead / stateStep
	n := int(before + (to+stateStep-1)/stateStep)
	clock, temperature, capped := make([]tally, n), make([]tally, n), make([]tally, n)
	for _, r := range runs {
		for _, s := range r.states {
			i := int((s.at + before*stateStep) / stateStep)
			if s.at < -before*stateStep || i >= n {
				continue
			}
			clock[i].add(s.clock)
			temperature[i].add(s.temperature)
			if s.throttle != nil {
				share := 0.0
				if *s.throttle&power.SoftwarePowerCap != 0 {
					share = 1
				}
				capped[i].add(&share)
			}
		}
	}
	states := make([]State, n)
	for i := range states {
		at := time.Duration(i)*stateStep - before*stateStep + stateStep/2
		states[i] = State{At: at, SMClock: clock[i].value(), Temperature: temperature[i].value(), Capped: capped[i].value()}
	}
	return slices.DeleteFunc(states, func(s State) bool {
		return s.SMClock == nil && s.Temperature == nil && s.Capped == nil
	})
}

// clockAt is the clock in the stretch that is nearest to a moment, of those that lie within the work,
// which ends at end.
func clockAt(states []State, at, end time.Duration) *float64 {
	var nearest *float64
	var off time.Duration
	for _, s := range states {
		inside := s.At >= stateStep/2 && s.At <= end-stateStep/2
		if d := (s.At - at).Abs(); inside && s.SMClock != nil && (nearest == nil || d < off) {
			nearest, off = s.SMClock, d
		}
	}
	return nearest
}

// tally of what was known.
type tally struct {
	sum float64
	n   int
}

func (a *tally) add(v *float64) {
	if v != nil {
		a.sum += *v
		a.n++
	}
}

func (a *tally) value() *float64 {
	if a.n == 0 {
		return nil
	}
	v := a.sum / float64(a.n)
	return &v
}
