package power

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

// ErrDisturbed is wrapped by the error of a measurement that became invalid through a sensor's fault, another process
// or another change of the card. The error's text names the cause.
var ErrDisturbed = errors.New("the measurement was disturbed")

// ErrLost is the error for a card that the driver can no longer reach, because the card has fallen off the bus.
var ErrLost = errors.New("the driver has lost the card: see the kernel's log")

// Disturbed returns an error with the given text that wraps [ErrDisturbed].
func Disturbed(format string, args ...any) error { return disturbance{fmt.Errorf(format, args...)} }

type disturbance struct{ error }

func (d disturbance) Is(target error) bool { return target == ErrDisturbed }
func (d disturbance) Unwrap() error        { return d.error }

// spoils reports whether an error also invalidates earlier measurements.
func spoils(err error) bool {
	return errors.Is(err, ErrDisturbed) || errors.Is(err, ErrLost) || errors.Is(err, ErrCounterStill)
}

// rests are the waiting times before each repetition of a disturbed window.
var rests = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}

// Undisturbed calls do. While do returns an [ErrDisturbed], Undisturbed waits and calls do again, up to three times.
// Each of these errors is passed to told, which may be nil.
func Undisturbed(ctx context.Context, clock Clock, do func(again bool) error, told func(error)) error {
	if clock == nil || do == nil {
		return errors.New("a clock and a function are required")
	}
	for try := 0; ; try++ {
		err := do(try > 0)
		if !errors.Is(err, ErrDisturbed) || try == len(rests) {
			return err
		}
		if told != nil {
			told(err)
		}
		if err := clock.Sleep(ctx, rests[try]); err != nil {
			return err
		}
	}
}

// Monitor detects changes of a card that this process did not make: processes that start or end, and changes of the
// power limit.
type Monitor struct {
	card   Card
	self   int
	others []int    // IDs of the other processes at the start, sorted
	asked  bool     // whether the card can list processes
	limit  *float64 // power limit at the start, in watts; nil: unknown
}

// NewMonitor starts to monitor a card. self is the ID of this process; 0: unknown.
func NewMonitor(card Card, self int) *Monitor {
	w := &Monitor{card: card, self: self, limit: limitNow(card)}
	w.others, w.asked = w.processes()
	return w
}

func (w *Monitor) processes() (pids []int, asked bool) {
	all, err := w.card.Processes()
	for _, p := range Others(all, w.self) {
		pids = append(pids, p.PID)
	}
	slices.Sort(pids)
	return pids, err == nil
}

// limitNow returns the current power limit in watts; nil if unknown.
func limitNow(card Card) *float64 {
	for {
		if g, ok := card.(interface{ PowerLimit() (float64, error) }); ok {
			return optional(g.PowerLimit())
		}
		wrapper, wraps := card.(interface{ Unwrap() Card })
		if !wraps {
			return nil
		}
		card = wrapper.Unwrap()
	}
}

// Check returns an [ErrDisturbed] if the card has changed since the start.
func (w *Monitor) Check() error {
	if now := limitNow(w.card); now != nil && w.limit != nil && math.Abs(*now-*w.limit) > 0.5 {
		return Disturbed("the card's power limit changed from %.0f to %.0f W: restore the limit, and do not change it during the measurement", *w.limit, *now)
	}
	now, asked := w.processes()
	if !asked || !w.asked {
		return nil
	}
	for _, pid := range now {
		if !slices.Contains(w.others, pid) {
			return Disturbed("another process (PID %d) started to use the card: end that process, or choose another card", pid)
		}
	}
	for _, pid := range w.others {
		if !slices.Contains(now, pid) {
			w.others = now // the end of a process is reported once
			return Disturbed("another process on the card (PID %d) ended during the measurement", pid)
		}
	}
	return nil
}

// inspect returns an [ErrDisturbed] if a window's readings are impossible.
func (m *Meter) inspect(w *Window) error {
	info := m.card.Info()
	watts := WattsRange(info)
	if w.Watts <= 0 || !watts.Holds(w.Watts) {
		return Disturbed("%s: the energy counter gives an impossible power of %.4g W, perhaps because the driver was reloaded: measure again", info.Name, w.Watts)
	}
	w.SMClock = w.plausible("clock", "MHz", w.SMClock, ClockRange(info))
	w.Temperature = w.plausible("temperature", "°C", w.Temperature, TemperatureRange)
	w.MemoryWatts = w.plausible("memory's power sensor", "W", w.MemoryWatts, watts)
	w.InstantWatts = w.plausible("power sensor", "W", w.InstantWatts, watts)
	if w.InstantWatts != nil && m.quick && m.opt.Duty == 0 && math.Abs(*w.InstantWatts/w.Watts-1) > sensorsDiffer {
		return Disturbed("%s: the energy counter shows %.0f W and the power sensor shows %.0f W, so one of them is wrong: measure again, or choose another card", info.Name, w.Watts, *w.InstantWatts)
	}
	if w.heat {
		return Disturbed("%s reduced its clock because of its temperature: let the card cool, or check its airflow", info.Name)
	}
	return m.monitor.Check()
}

const (
	// sensorsDiffer is the largest relative difference between the mean of a fast power sensor and the energy counter
	// in a window. A window of a second contains only ten readings, each of 25 ms.
	sensorsDiffer = 0.35
	// quickWindow is the longest averaging window, in seconds, with which a power sensor shows the power of a single
	// measurement window.
	quickWindow = 0.3
)

// ownPID returns this process's ID if the options do not give one.
func ownPID(o Options) int {
	if o.Self != 0 {
		return o.Self
	}
	return os.Getpid()
}
