package power

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Span is the energy and state of a card between two steps of its energy counter. It includes all work on the card. A
// nil pointer means that the sensor did not respond.
type Span struct {
	Begin        float64  `json:"begin_seconds"` // by the clock passed to [Watch]
	Length       float64  `json:"length_seconds"`
	Joules       float64  `json:"joules"`
	Watts        float64  `json:"watts"`
	InstantWatts *float64 `json:"instant_watts,omitempty"` // mean of the samples, as a cross-check
	MemoryWatts  *float64 `json:"memory_watts,omitempty"`  // running average at the end; less precise than Watts
	SMClock      *float64 `json:"clock_mhz,omitempty"`
	MemClock     *float64 `json:"mem_clock_mhz,omitempty"`
	Temperature  *float64 `json:"temperature_c,omitempty"` // temperature at the end
	CappedShare  *float64 `json:"capped_share,omitempty"`  // share of the samples at the power cap
	Throttle     []string `json:"throttle,omitempty"`      // every reason for a lower clock that was seen
	// Heat reports whether the card reduced its clock because of temperature.
	Heat bool `json:"heat,omitempty"`
}

// Watch measures a card while other processes use it. The measurement starts at the first step of the energy counter at
// which open returns true. It ends at the first later step at which enough returns true. Both functions get the time of
// the step; enough also gets the time of the first step. If open is nil, the measurement starts at the first step.
// Watch sleeps for a millisecond between two readings of the counter, because the processes that feed the card need the
// host's processors.
func Watch(ctx context.Context, card Card, clock Clock, open func(now time.Duration) bool, enough func(begin, now time.Duration) bool) (Span, error) {
	if card == nil || clock == nil || enough == nil {
		return Span{}, errors.New("Watch needs a card, a clock and a function enough that ends the measurement")
	}
	w := watcher{card: card, clock: clock}
	e0, t0, err := w.step(ctx)
	for err == nil && open != nil && !open(t0) {
		e0, t0, err = w.step(ctx)
	}
	for err == nil {
		w.samples.take(card)
		var e1 uint64
		var t1 time.Duration
		if e1, t1, err = w.step(ctx); err == nil && enough(t0, t1) {
			return w.span(e0, e1, t0, t1)
		}
	}
	return Span{}, err
}

// watcher polls the energy counter of a card.
type watcher struct {
	card    Card
	clock   Clock
	gap     pollGap
	samples samples
}

// step waits for the next step of the counter and returns the counter's value and the time. It skips steps that were
// seen too late.
func (w *watcher) step(ctx context.Context) (uint64, time.Duration, error) {
	const pause, patience = time.Millisecond, 3 * time.Second
	last, err := w.card.Energy()
	for begin, before := w.clock.Now(), w.clock.Now(); err == nil; {
		if err = w.clock.Sleep(ctx, pause); err != nil {
			return 0, 0, err
		}
		var e uint64
		e, err = w.card.Energy()
		now := w.clock.Now()
		gap := now - before
		w.gap.add(gap)
		switch {
		case err != nil:
		case e != last && (gap <= w.gap.late() || now-begin > patience/3):
			return e, now, nil
		case e == last && now-begin > patience:
			return 0, 0, fmt.Errorf("%s: no step of the energy counter in %v: %w", w.card.Info().Name, patience, ErrCounterStill)
		}
		last, before = e, now
	}
	return 0, 0, fmt.Errorf("%s: energy counter: %w", w.card.Info().Name, err)
}

func (w *watcher) span(e0, e1 uint64, t0, t1 time.Duration) (Span, error) {
	if e1 <= e0 {
		return Span{}, fmt.Errorf("%s: the energy counter fell from %d to %d mJ, perhaps because the driver was reloaded: measure again", w.card.Info().Name, e0, e1)
	}
	s := Span{Begin: t0.Seconds(), Length: (t1 - t0).Seconds(), Joules: float64(e1-e0) / 1000}
	s.Watts = s.Joules / s.Length
	s.InstantWatts, s.CappedShare = w.samples.instant.value(), w.samples.capped.value()
	s.SMClock, s.MemClock = w.samples.sm.value(), w.samples.mem.value()
	s.Throttle, s.Heat = w.samples.reasons.Names(), w.samples.reasons.Heat()
	s.Temperature, s.MemoryWatts = optional(w.card.Temperature()), optional(w.card.Power(Average, Memory))
	return s, nil
}
