package power

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrCounterStill is the error for a card whose energy counter does not change, so that no energy can be measured.
var ErrCounterStill = errors.New("the energy counter does not change often enough: measure on another card")

// Window is one measurement: a load runs back to back between two steps of the energy counter. A nil pointer means that
// the sensor did not respond.
type Window struct {
	Load         string   `json:"load"`
	Begin        float64  `json:"begin_seconds"`  // time since the meter was created
	Length       float64  `json:"length_seconds"` // time between the two steps
	Joules       float64  `json:"window_joules"`  // energy between the two steps
	Executions   int      `json:"executions"`     // in the run around the window
	Seconds      float64  `json:"seconds"`        // per execution
	PerExecution float64  `json:"joules"`         // per execution
	Watts        float64  `json:"watts"`
	InstantWatts *float64 `json:"instant_watts,omitempty"` // mean of the samples, as a cross-check
	MemoryWatts  *float64 `json:"memory_watts,omitempty"`  // running average at the end; less precise than Watts
	SMClock      *float64 `json:"clock_mhz,omitempty"`
	// EffectiveClock is a multiprocessor's clock during the work in MHz: its cycles divided by the card's time; see
	// [Paced].
	EffectiveClock *float64 `json:"effective_clock_mhz,omitempty"`
	// Duty is the share of time that the load was busy. IdleJoules is the energy of the gaps per execution;
	// PerExecution and Seconds do not include the gaps. Absent: no gaps.
	Duty        float64  `json:"duty,omitempty"`
	IdleJoules  float64  `json:"idle_joules,omitempty"`
	MemClock    *float64 `json:"mem_clock_mhz,omitempty"`
	Temperature *float64 `json:"temperature_c,omitempty"` // temperature at the end
	CappedShare *float64 `json:"capped_share,omitempty"`  // share of the samples at the power cap
	Throttle    []string `json:"throttle,omitempty"`      // every reason for a lower clock that was seen
	heat        bool
	odd         []string // implausible readings that were left out
	each        float64  // seconds per execution, including gaps
}

// window lets a load settle and measures it from one step of the energy counter to another. about is an estimate of the
// load's seconds per execution. If the work ends before the window, the measurement is repeated with more executions.
func (m *Meter) window(ctx context.Context, load Load, about float64) (Window, error) {
	return m.windowAfter(ctx, load, about, m.settle(load))
}

// windowAfter is window with a given settling time. A disturbed window is measured again, after the card has rested.
func (m *Meter) windowAfter(ctx context.Context, load Load, about float64, settle time.Duration) (w Window, err error) {
	err = Undisturbed(ctx, m.clock, func(again bool) error {
		if again {
			settle = max(settle, m.opt.CapSettle)
		}
		w, err = m.oneWindow(ctx, load, about, settle)
		return err
	}, func(err error) { m.again = append(m.again, err.Error()) })
	return w, err
}

func (m *Meter) oneWindow(ctx context.Context, load Load, about float64, settle time.Duration) (Window, error) {
	const tries = 5
	settled, err := m.burst(ctx, load, executions(settle, about))
	if err != nil {
		return Window{}, err
	}
	length := m.windowOf(settled)
	// The first step may be up to one tick away, and the last step half a tick late.
	span := (length + m.tick*3/2 + 10*time.Millisecond).Seconds()
	for try := range tries {
		slack := 1.03 * math.Pow(1.2, float64(try))
		w, whole, err := m.tryWindow(ctx, load, executions(seconds(span*slack), settled), length)
		if err == nil && whole {
			m.seen[load.Name()], m.last = w, w
		}
		if err != nil || whole {
			return w, err
		}
	}
	return Window{}, fmt.Errorf("load %q ended before its window five times, because its execution time varies too much: check for other work on the card", load.Name())
}

// settle returns how long a load must run before its window. The time is longer for a load that may reach the power cap
// from lower power. A load without a window yet is assumed to draw as much as the highest of the other loads.
func (m *Meter) settle(load Load) time.Duration {
	const rise, recent = 0.97, 500 * time.Millisecond
	own, known := m.seen[load.Name()]
	if known && own.CappedShare != nil && *own.CappedShare == 0 {
		return m.opt.Settle
	}
	for _, w := range m.seen {
		if !known {
			own.Watts = max(own.Watts, w.Watts)
		}
	}
	idle := m.since(m.start).Seconds()-m.last.Begin-m.last.Length > recent.Seconds()
	if idle || m.last.Watts < rise*own.Watts {
		return max(m.opt.Settle, m.opt.CapSettle)
	}
	return m.opt.Settle
}

// tryWindow measures a window within a run of n executions. It reports whether the run was long enough.
func (m *Meter) tryWindow(ctx context.Context, load Load, n int, length time.Duration) (w Window, whole bool, err error) {
	r, err := m.begin(load, n)
	if err != nil {
		return w, false, err
	}
	w = Window{Load: load.Name(), Executions: n}
	if err := m.between(ctx, &w, length); err != nil {
		r.abandon(ctx)
		return w, false, err
	}
	end := m.clock.Now()
	if w.each, err = r.finish(ctx); err != nil {
		return w, false, err
	}
	// If the work is over now, it may have ended before the window did.
	whole = m.since(end) >= 2*time.Millisecond
	w.Seconds, w.PerExecution = w.each, w.Watts*w.each
	if paced, ok := load.(Paced); ok && m.opt.Duty != 0 {
		err = m.takeOut(&w, paced)
	}
	return w, whole, err
}

// between measures power from one step of the counter to another.
func (m *Meter) between(ctx context.Context, w *Window, length time.Duration) error {
	e0, t0, err := m.edge(ctx)
	if err != nil {
		return err
	}
	s, err := m.sample(ctx, e0, t0+length-m.tick/2)
	if err != nil {
		return err
	}
	e1, t1, err := m.edge(ctx)
	if err != nil {
		return err
	}
	if e1 <= s.counter {
		return m.wentBack(s.counter, e1)
	}
	w.Begin, w.Length, w.Joules = (t0 - m.start).Seconds(), (t1 - t0).Seconds(), float64(e1-e0)/1000
	w.Watts = w.Joules / w.Length
	s.into(w)
	w.Temperature, w.MemoryWatts = optional(m.card.Temperature()), optional(m.card.Power(Average, Memory))
	return m.inspect(w)
}

func (m *Meter) wentBack(from, to uint64) error {
	return Disturbed("%s: the energy counter fell from %d to %d mJ, perhaps because the driver was reloaded: measure again", m.card.Info().Name, from, to)
}

// edge polls until the counter steps, and returns its new value and the time. For a limited time it skips steps that
// were seen late because a query took unusually long.
func (m *Meter) edge(ctx context.Context) (uint64, time.Duration, error) {
	const patience = 3 * time.Second
	last, err := m.card.Energy()
	begin := m.clock.Now()
	var previous time.Duration // the step may have occurred during the previous reading
	for before := begin; err == nil; {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		var e uint64
		e, err = m.card.Energy()
		now := m.clock.Now()
		gap := now - before
		m.gap.add(gap)
		switch {
		case err != nil:
		case e < last:
			return 0, 0, m.wentBack(last, e)
		case e != last && (gap+previous <= m.gap.late() || now-begin > patience/3):
			return e, now, nil
		case now-begin > patience && e == last:
			return 0, 0, fmt.Errorf("%s: no step of the energy counter in %v: %w", m.card.Info().Name, patience, ErrCounterStill)
		}
		last, before, previous = e, now, gap
	}
	return 0, 0, fmt.Errorf("%s: energy counter: %w", m.card.Info().Name, err)
}

// sample reads the other sensors until a given time. It also reads the energy counter, whose last value is before.
func (m *Meter) sample(ctx context.Context, before uint64, until time.Duration) (samples, error) {
	const every = 40 * time.Millisecond
	s := samples{counter: before}
	for {
		s.take(m.card)
		if e, err := m.card.Energy(); err == nil && e < s.counter {
			return s, m.wentBack(s.counter, e)
		} else if err == nil {
			s.counter = e
		}
		left := until - m.clock.Now()
		if left <= 0 {
			return s, nil
		}
		if err := m.clock.Sleep(ctx, min(left, every)); err != nil {
			return s, err
		}
	}
}

// samples are the readings within a window.
type samples struct {
	counter                  uint64 // in millijoules
	instant, sm, mem, capped mean
	reasons                  Throttle
}

func (s *samples) take(card Card) {
	s.instant.add(card.Power(Instant, GPU))
	s.sm.add(card.SMClock())
	s.mem.add(card.MemClock())
	reasons, err := card.Throttle()
	s.reasons |= reasons
	capped := 0.0
	if reasons&SoftwarePowerCap != 0 {
		capped = 1
	}
	s.capped.add(capped, err)
}

func (s *samples) into(w *Window) {
	w.InstantWatts, w.CappedShare = s.instant.value(), s.capped.value()
	w.SMClock, w.MemClock = s.sm.value(), s.mem.value()
	w.Throttle, w.heat = s.reasons.Names(), s.reasons.Heat()
}

// mean averages the successful readings.
type mean struct {
	sum float64
	n   int
}

func (a *mean) add(v float64, err error) {
	if err == nil {
		a.sum += v
		a.n++
	}
}

func (a *mean) addKnown(v *float64) {
	if v != nil {
		a.add(*v, nil)
	}
}

// value returns the mean, or nil if there was no reading.
func (a mean) value() *float64 {
	if a.n == 0 {
		return nil
	}
	v := a.sum / float64(a.n)
	return &v
}
