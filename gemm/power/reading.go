package power

import (
	"context"
	"time"
)

// WarmUp makes the self-test, unless the options hold one, and runs a load to its steady state.
// What was found until an error comes with it.
func (m *Meter) WarmUp(ctx context.Context, load Load) (*SelfTest, *Steady, error) {
	test, err := m.selfTest(ctx, load)
	if err != nil {
		return nil, nil, err
	}
	m.beginStage(stageWarmUp)
	steady, err := m.Steady(ctx, load)
	return test, &steady, err
}

// Reading is one window of a load that has run for settle before it. A single reading says little:
// compare it with one of a baseline shortly before or after.
func (m *Meter) Reading(ctx context.Context, load Load, settle time.Duration) (Window, error) {
	about, err := m.estimate(ctx, load)
	if err != nil {
		return Window{}, err
	}
	w, err := m.windowAfter(ctx, load, about, settle)
	if err == nil {
		m.tell()
	}
	return w, err
}

// Per restates a window whose executions did parts times a smaller piece of work each.
func (w *Window) Per(parts int) {
	w.Executions *= parts
	w.PerExecution /= float64(parts)
	w.Seconds /= float64(parts)
}
