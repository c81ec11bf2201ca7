package profile

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// State is the mean state of the card during one part of the runs. A nil field was not read.
type State struct {
	At          Seconds  `json:"at_seconds"` // middle of that part
	SMClock     *float64 `json:"clock_mhz,omitempty"`
	Temperature *float64 `json:"temperature_c,omitempty"`
	Capped      *float64 `json:"capped_share,omitempty"` // share of queries during which the power cap limited the clock
}

// stateStep is the length of one part. It is shorter than stateEvery, because many runs together are queried more
// often.
const stateStep = 20 * ms

// meanStates returns the mean states of runs, from shortly before their work until the moment to.
func meanStates(runs []*run, to Seconds) []State {
	const before = Seconds(margin) / stateStep
	n := int(before + (to+stateStep-1)/stateStep)
	clock, temperature, capped := make([]mean, n), make([]mean, n), make([]mean, n)
	for _, r := range runs {
		for _, s := range r.states {
			at := Seconds(s.at)
			i := int((at + before*stateStep) / stateStep)
			if at < -before*stateStep || i >= n {
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
		at := Seconds(i)*stateStep - before*stateStep + stateStep/2
		states[i] = State{At: at, SMClock: clock[i].value(), Temperature: temperature[i].value(), Capped: capped[i].value()}
	}
	return slices.DeleteFunc(states, func(s State) bool {
		return s.SMClock == nil && s.Temperature == nil && s.Capped == nil
	})
}

// clockAt returns the clock of the state nearest to a moment, among the states before end, the end of the work. It is
// nil if no clock is known.
func clockAt(states []State, at, end Seconds) *float64 {
	var nearest *float64
	var off Seconds
	for _, s := range states {
		inside := s.At >= stateStep/2 && s.At <= end-stateStep/2
		if d := (s.At - at).Abs(); inside && s.SMClock != nil && (nearest == nil || d < off) {
			nearest, off = s.SMClock, d
		}
	}
	return nearest
}

// cappedShare returns the share of queries in the second half of the work during which the power cap limited the clock;
// 0 if unknown. The first half is left out, because the card needs time to reach its cap.
func cappedShare(states []State, end Seconds) float64 {
	var sum mean
	for _, s := range states {
		if s.At > end/2 && s.At < end {
			sum.add(s.Capped)
		}
	}
	if share := sum.value(); share != nil {
		return *share
	}
	return 0
}

// mean averages the values that are known.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v *float64) {
	if v != nil {
		m.sum += *v
		m.n++
	}
}

// value returns the mean, or nil if no value is known.
func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}
