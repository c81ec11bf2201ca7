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

// ErrDisturbed is wrapped by the error of a measurement that a sensor's fault, another process or another change of the card made
// invalid. The text names the cause.
var ErrDisturbed = errors.New("the measurement was disturbed")

// ErrLost is the error for a card that the driver has lost, because the card has fallen off the bus.
var ErrLost = errors.New("the driver has lost the card: see the kernel's log")

// Disturbed returns an [ErrDisturbed] with the given text.
func Disturbed(format string, args ...any) error { return disturbance{fmt.Errorf(format, args...)} }

type disturbance struct{ error }

func (d disturbance) Is(target error) bool { return target == ErrDisturbed }
func (d disturbance) Unwrap() error        { return d.error }

// spoils reports whether an error also invalidates the figures measured before it.
func spoils(err error) bool {
	return errors.Is(err, ErrDisturbed) || errors.Is(err, ErrLost) || errors.Is(err, ErrCounterStill)
}

// rests are the times to wait before a disturbed window is measured again.
var rests = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}

// Undisturbed calls do, and while its error is an [ErrDisturbed], waits and calls it again, a few times. told is called with each
// of these errors; nil: it is not called.
func Undisturbed(ctx context.Context, clock Clock, do func(again bool) error, told func(error)) error {
	if clock == nil || do == nil {
		return errors.New("no clock or no function was given")
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

// Monitor detects changes of a card by others: processes that come or go, and changes of the power limit.
type Monitor struct {
	card   Card
	self   int
	others []int    // process ids of the other processes at the beginning, sorted
	asked  bool     // the card can list processes
	limit  *float64 // in watts, at the beginning; nil: unknown
}

// NewMonitor begins to monitor a card. self is this process's number; 0: unknown.
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

// limitNow returns the power limit that is set now; nil if unknown.
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

// Check returns an [ErrDisturbed] if the card is no longer as it was at the beginning.
func (w *Monitor) Check() error {
	if now := limitNow(w.card); now != nil && w.limit != nil && math.Abs(*now-*w.limit) > 0.5 {
		return Disturbed("the card's power limit changed from %.0f to %.0f W: set it back, and keep it for the whole measurement", *w.limit, *now)
	}
	now, asked := w.processes()
	if !asked || !w.asked {
		return nil
	}
	for _, pid := range now {
		if !slices.Contains(w.others, pid) {
			return Disturbed("another process came to the card (%d): end it, or choose another card", pid)
		}
	}
	for _, pid := range w.others {
		if !slices.Contains(now, pid) {
			w.others = now // so that it is reported once
			return Disturbed("another process left the card (%d) during the measurement", pid)
		}
	}
	return nil
}

// inspect returns an [ErrDisturbed] if a window's values are impossible.
func (m *Meter) inspect(w *Window) error {
	info := m.card.Info()
	watts := WattsRange(info)
	if w.Watts <= 0 || !watts.Holds(w.Watts) {
		return Disturbed("%s: by its energy counter the card drew %.4g W: this is impossible, and the driver may have been reloaded: measure again", info.Name, w.Watts)
	}
	w.SMClock = w.plausible("clock, in MHz,", w.SMClock, ClockRange(info))
	w.Temperature = w.plausible("temperature, in °C,", w.Temperature, TemperatureRange)
	w.MemoryWatts = w.plausible("memory's power sensor, in W,", w.MemoryWatts, watts)
	w.InstantWatts = w.plausible("power sensor, in W,", w.InstantWatts, watts)
	if w.InstantWatts != nil && m.quick && m.opt.Duty == 0 && math.Abs(*w.InstantWatts/w.Watts-1) > sensorsDiffer {
		return Disturbed("%s: the energy counter shows %.0f W and the power sensor %.0f W: one of the two is wrong; measure again, or choose another card", info.Name, w.Watts, *w.InstantWatts)
	}
	if w.heat {
		return Disturbed("%s reduced its clock because of its temperature: let the card cool, or check its airflow", info.Name)
	}
	return m.monitor.Check()
}

const (
	// sensorsDiffer is the share by which the mean of a quick power sensor and the energy counter may differ in a window: a window of a
	// second holds ten readings of 25 ms.
	sensorsDiffer = 0.35
	// quickWindow is the longest window of a power sensor, in seconds, that shows the power of one window of the meter.
	quickWindow = 0.3
)

// ownPID is this process's number for monitors, where the options name none.
func ownPID(o Options) int {
	if o.Self != 0 {
		return o.Self
	}
	return os.Getpid()
}
