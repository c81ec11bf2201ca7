package power

import (
	"context"
	"fmt"
	"math"
	"time"
)

// AutoDuty selects the largest duty at which the baseline runs below the power cap, in steps of 1/32.
const AutoDuty = -1

// LeastDuty is the lowest duty. Its gaps are about a hundred times as long as an execution, and so are the readings.
const LeastDuty = 0.01

// Paced is a Load that can run in bursts with gaps between them.
type Paced interface {
	Load
	// Pace makes every later execution last at least the time every, with a gap after each burst. A time shorter than
	// an execution leaves no gaps. 0 runs the load back to back, as before the first call. While a load has a pace,
	// Bursts measures its bursts.
	Pace(ctx context.Context, every time.Duration) error
	// Rest starts only the gaps of n executions. They last as long as n paced executions.
	Rest(n int) error
	// Bursts describes the bursts of the last Start. The meter calls it after Wait.
	Bursts() (Bursts, error)
}

// Bursts describes the bursts of a run, measured with the card's clocks.
type Bursts struct {
	Count int
	Busy  time.Duration // total duration of all bursts
	// Clock is a multiprocessor's mean clock during the bursts in MHz: its cycles divided by the card's time. 0:
	// unknown.
	Clock float64
}

// Pacing describes the bursts of a comparison. All loads have the same time for an execution and its gaps.
type Pacing struct {
	// Duty is the share of time that the baseline was busy, measured before the first block. 1: back to back.
	Duty float64 `json:"duty"`
	// Auto is true if Duty was selected as the largest duty below the power cap.
	Auto bool `json:"auto,omitempty"`
	// Burst and Gap are the durations of the baseline's bursts and gaps, in seconds.
	Burst float64 `json:"burst_seconds"`
	Gap   float64 `json:"gap_seconds"`
	// IdleWatts is the power in the gaps. The joules of an execution do not include the energy of the gaps.
	IdleWatts float64 `json:"idle_watts,omitempty"`

	every time.Duration // time of an execution and its gaps
}

// steadyPace is a time shorter than any execution.
const steadyPace = time.Nanosecond

// pace finds the time per execution that gives the duty of the options, and applies it to all loads.
func (m *Meter) pace(ctx context.Context, loads Loads, r *Result) error {
	m.beginStage(stageWarmUp)
	var all []Paced
	for _, load := range loads.all() {
		paced, ok := load.(Paced)
		if !ok {
			return fmt.Errorf("load %q cannot run in bursts: measure it without a duty", load.Name())
		}
		all = append(all, paced)
	}
	base := all[0]
	p := &Pacing{Duty: m.opt.Duty}
	var err error
	if p.Auto = m.opt.Duty == AutoDuty; p.Auto {
		if p.Duty, err = m.largestDuty(ctx, base); err != nil {
			return err
		}
	}
	if err = m.findPace(ctx, base, p); err != nil {
		return err
	}
	r.Pacing = p
	for _, load := range all {
		if err := load.Pace(ctx, p.every); err != nil {
			return err
		}
	}
	return nil
}

// measureGaps measures the power of the gaps on the warm card.
func (m *Meter) measureGaps(ctx context.Context, base Load, p *Pacing) error {
	if p == nil || p.Duty == 1 {
		return nil
	}
	w, err := m.windowAfter(ctx, resting{base.(Paced)}, p.every.Seconds(), 500*time.Millisecond)
	p.IdleWatts, m.idle = w.Watts, w.Watts
	return err
}

// unpace makes the loads run back to back again.
func (m *Meter) unpace(ctx context.Context, loads Loads) error {
	m.idle = 0
	for _, load := range loads.all() {
		if paced, ok := load.(Paced); ok {
			if err := paced.Pace(ctx, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// findPace sets a load's pace so that it has p's duty. It takes several steps, because the duration of a burst depends
// on the clock, and the clock depends on the duty.
func (m *Meter) findPace(ctx context.Context, load Paced, p *Pacing) error {
	const probe, tries, near = 400 * time.Millisecond, 6, 0.005
	each, err := m.estimate(ctx, load)
	if err != nil {
		return err
	}
	for range tries {
		if p.every = seconds(each / p.Duty); p.Duty == 1 {
			p.every = steadyPace
		}
		if err := load.Pace(ctx, p.every); err != nil {
			return err
		}
		n := executions(probe, each/p.Duty)
		wall, err := m.burst(ctx, load, n)
		if err != nil {
			return err
		}
		b, err := load.Bursts()
		if err != nil {
			return err
		}
		busy := b.Busy.Seconds() / float64(n)
		p.Burst = b.Busy.Seconds() / float64(b.Count)
		p.Gap = (wall - busy) * float64(n) / float64(b.Count)
		off := math.Abs(busy/each - 1)
		if each = busy; off < near || p.Duty == 1 {
			break
		}
	}
	return nil
}

// largestDuty finds the largest duty below the power cap by bisection.
func (m *Meter) largestDuty(ctx context.Context, load Paced) (float64, error) {
	const settle, step = time.Second, 1.0 / 32
	low, high := 0.0, 1+step
	for duty := 1.0; high-low > step; duty = math.Floor((low+high)/2/step) * step {
		p := Pacing{Duty: duty}
		if err := m.findPace(ctx, load, &p); err != nil {
			return 0, err
		}
		w, err := m.windowAfter(ctx, load, max(p.every.Seconds(), p.Burst), settle)
		switch {
		case err != nil:
			return 0, err
		case w.CappedShare == nil:
			return 0, fmt.Errorf("%s does not report whether it is at its power cap: give a number instead of the duty auto", m.card.Info().Name)
		case isCapped(*w.CappedShare):
			high = duty
		default:
			low = duty
		}
	}
	if low == 0 {
		return 0, fmt.Errorf("%s is at its power cap even at the smallest duty, %v: measure a smaller product, or measure without a duty", m.card.Info().Name, step)
	}
	return low, nil
}

// takeOut subtracts the gaps from a window's energy and time. Without gaps it only sets the effective clock.
func (m *Meter) takeOut(w *Window, load Paced) error {
	b, err := load.Bursts()
	if err != nil {
		return fmt.Errorf("load %q: bursts: %w", load.Name(), err)
	}
	if b.Clock > 0 {
		w.EffectiveClock = &b.Clock
	}
	if m.idle == 0 {
		return nil
	}
	w.Seconds = b.Busy.Seconds() / float64(w.Executions)
	w.Duty = w.Seconds / w.each
	w.IdleJoules = m.idle * (w.each - w.Seconds)
	w.PerExecution -= w.IdleJoules
	return nil
}

// resting is a paced load that runs only its gaps.
type resting struct{ load Paced }

func (r resting) Name() string                   { return "idle" }
func (r resting) Start(n int) error              { return r.load.Rest(n) }
func (r resting) Wait(ctx context.Context) error { return r.load.Wait(ctx) }
