package power

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Steady describes the warm-up: until execution time is constant (FinGraV's SSE), and then until power is constant
// (SSP).
type Steady struct {
	// Reached is false if the warm-up's time was over before the steady state.
	Reached bool `json:"reached"`
	// SSE is when execution time became constant, in seconds since the start of the warm-up; absent if it did not. SSP
	// is when power became constant.
	SSE float64 `json:"sse_seconds,omitempty"`
	SSP float64 `json:"ssp_seconds,omitempty"`
	// ExecutionTimes are the seconds per execution of each burst before SSE.
	ExecutionTimes []float64 `json:"execution_times"`
	// Windows are the windows between SSE and SSP.
	Windows []Window `json:"windows"`
}

const (
	// Execution time is constant if sseBursts bursts lie within the bin's margin.
	sseBursts = 4
	// Power is constant if the mean of sspWindows windows differs from the mean of the sspWindows windows before by
	// less than sspChange. Blocks cancel slower drifts.
	sspWindows = 3
	sspChange  = 0.005
)

// Steady runs a load until its execution time and then its power are constant, or until Options.WarmUp has passed.
// After an error it returns the results so far.
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
		about = w.each
		s.Windows = append(s.Windows, w)
		if constantPower(s.Windows) {
			s.Reached, s.SSP = true, m.since(begin).Seconds()
			break
		}
	}
	return s, nil
}

// steadyExecution repeats bursts until execution time is constant, and returns the seconds per execution. A burst is
// four executions, as in FinGraV, or executions for 5 ms, whichever is longer.
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
