package power

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Steady says how the steady state was found: first constant execution time (FinGraV's SSE), then
// constant power (SSP).
type Steady struct {
	// Reached is false where the bound on the warm-up came first.
	Reached bool `json:"reached"`
	// SSE is when execution time no longer fell, in seconds since the warm-up began; absent where
	// it never did. SSP likewise for power.
	SSE float64 `json:"sse_seconds,omitempty"`
	SSP float64 `json:"ssp_seconds,omitempty"`
	// ExecutionTimes are seconds per execution, burst by burst, until SSE.
	ExecutionTimes []float64 `json:"execution_times"`
	// Windows are those measured until SSP, with their temperatures.
	Windows []Window `json:"windows"`
}

const (
	// sseBursts bursts in a row within the binning margin of each other are constant.
	sseBursts = 4
	// sspWindows windows are as many again as those before, within sspChange, when power is
	// constant. A slower drift than that is the blocks' business.
	sspWindows = 3
	sspChange  = 0.005
)

// Steady runs a load until its execution time and then its power are constant, for no longer than
// Options.WarmUp. Where it ends early the result holds what was measured so far.
func (m *Meter) Steady(ctx context.Context, load Load) (Steady, error) {
	s := Steady{ExecutionTimes: []float64{}, Windows: []Window{}}
	begin := m.clock.Now()
	about, err := m.steadyExecution(ctx, load, &s)
	if err != nil || s.SSE == 0 {
		return s, err
	}
	for m.since(begin) < m.opt.WarmUp {
		w, err := m.window(ctx, load, about)
		if err != nil {
			return s, err
		}
		m.tell()
		about = w.Seconds
		s.Windows = append(s.Windows, w)
		if constantPower(s.Windows) {
			s.Reached, s.SSP = true, m.since(begin).Seconds()
			break
		}
	}
	return s, nil
}

// steadyExecution repeats bursts of four executions, as FinGraV does, or of 5 ms where that is
// longer, and returns the seconds per execution.
func (m *Meter) steadyExecution(ctx context.Context, load Load, s *Steady) (float64, error) {
	const fewest, shortest = 4, 0.005
	begin := m.clock.Now()
	n, about := fewest, 0.0
	for m.since(begin) < m.opt.WarmUp {
		took, err := m.burst(ctx, load, n)
		if err != nil {
			return 0, err
		}
		s.ExecutionTimes = append(s.ExecutionTimes, took)
		about, n = took, max(fewest, int(shortest/took))
		if k := len(s.ExecutionTimes) - sseBursts; k >= 0 {
			last := s.ExecutionTimes[k:]
			if slices.Max(last) <= slices.Min(last)*(1+Margin(about)) {
				s.SSE = m.since(begin).Seconds()
				break
			}
		}
	}
	return about, nil
}

func constantPower(windows []Window) bool {
	if len(windows) < 2*sspWindows {
		return false
	}
	var watts []float64
	for _, w := range windows[len(windows)-2*sspWindows:] {
		watts = append(watts, w.Watts)
	}
	before, now := stat.Mean(watts[:sspWindows], nil), stat.Mean(watts[sspWindows:], nil)
	return now < before*(1+sspChange) && before < now*(1+sspChange)
}
