package power

import (
	"context"
	"time"
)

// WarmUp runs the self-test, unless the options hold the result of one, and then runs a load until its steady state.
// After an error it returns the results so far.
func (m *Meter) WarmUp(ctx context.Context, load Load) (*SelfTest, *Steady, error) {
	test, err := m.selfTest(ctx, load)
	if err != nil {
		return nil, nil, err
	}
	steady, err := m.warmUp(ctx, load)
	return test, steady, err
}

func (m *Meter) warmUp(ctx context.Context, load Load) (*Steady, error) {
	m.beginStage(stageWarmUp)
	steady, err := m.Steady(ctx, load)
	return &steady, err
}

// Reading measures one window of a load, after the load has run for the time settle. Compare a reading only with a
// baseline's reading shortly before or after it, because the card drifts.
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

// Per converts a window's executions to smaller pieces of work. Every execution consists of parts pieces.
func (w *Window) Per(parts int) {
	w.Executions *= parts
	w.PerExecution /= float64(parts)
	w.Seconds /= float64(parts)
	w.IdleJoules /= float64(parts)
}
