package power

import (
	"errors"
	"fmt"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// Options are the options of a Meter. The zero value of a field means its default.
type Options struct {
	// Precision ends a comparison: the half width that every 95 % interval must reach, as a share
	// of the ratio. Default 0.003.
	Precision float64
	// Time ends a comparison that has not reached Precision. It begins at the first block, after self-test and
	// warm-up. Default 60 s.
	Time time.Duration
	// Window is the length of one measurement, and at least five steps of the counter. Default 1 s: at the
	// power cap, many short windows are less precise than few long ones.
	Window time.Duration
	// Settle is the least time that a load runs before its window. Default 150 ms.
	Settle time.Duration
	// CapSettle is the settling time of a load that reaches the power cap from lower power, because the card's power control then
	// overshoots and oscillates for seconds. Default 3 s.
	CapSettle time.Duration
	// WarmUp is the longest warm-up. Default 60 s.
	WarmUp time.Duration
	// SelfTest is the result of an earlier self-test of this card. Default: a new self-test runs.
	SelfTest *SelfTest
	// Duty is the share of time that the baseline is busy, from [LeastDuty] to 1. Loads run in bursts with gaps, so that the card's
	// average power stays below its cap. Ratios are those of the bursts. 1 runs loads back to back, and measures the
	// multiprocessors' clock. [AutoDuty] finds the largest duty below the cap. Loads must be [Paced]. Default 0: back to back.
	Duty float64
	// Seed sets the order within blocks and the bootstrap. Default 0.
	Seed uint64
	// EDSk is k of the energy-delay sum [EDS]. Default 2.
	EDSk float64
	// Clock is the measurement's clock. Default HostClock().
	Clock Clock
	// Self is this process's PID, so that warnings about other processes leave it out. Default 0: unknown.
	Self int
	// Date and Command are copied into the result, Date in the format of RFC 3339.
	Date    time.Time
	Command string
	// Progress is called when a stage begins and after every window, in the meter's goroutine. Stages are
	// "self-test", "warm-up" and "measure". The last one counts nanoseconds of Time. Default: it is not called.
	Progress func(Event)
}

// Event reports the progress of a measurement.
type Event = progress.Event

// withDefaults fills in unset fields.
func (o Options) withDefaults() Options {
	fill(&o.Precision, 0.003)
	fill(&o.Time, 60*time.Second)
	fill(&o.Window, time.Second)
	fill(&o.Settle, 150*time.Millisecond)
	fill(&o.CapSettle, 3*time.Second)
	fill(&o.WarmUp, 60*time.Second)
	fill(&o.EDSk, 2)
	if o.Clock == nil {
		o.Clock = HostClock()
	}
	return o
}

func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Validate returns all errors in the options, joined.
func (o Options) Validate() error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	o = o.withDefaults()
	check(o.Precision > 0 && o.Precision < 1, "precision %v: give a share between 0 and 1, such as 0.003", o.Precision)
	check(o.Time > 0, "time %v: give more than 0", o.Time)
	check(o.Window >= 100*time.Millisecond, "window %v: give at least 100ms, better a second", o.Window)
	check(o.Settle > 0, "settle %v: give more than 0", o.Settle)
	check(o.CapSettle > 0, "cap settle %v: give more than 0", o.CapSettle)
	check(o.WarmUp > 0, "warm-up %v: give more than 0", o.WarmUp)
	check(o.Duty == 0 || o.Duty >= LeastDuty && o.Duty <= 1 || o.Duty == AutoDuty, "duty %v: give a share of time from %v to 1", o.Duty, LeastDuty)
	check(o.EDSk > 1, "k %v of the energy-delay sum: give more than 1", o.EDSk)
	return errors.Join(wrong...)
}

// Meter measures loads on one card. It is not for concurrent use.
type Meter struct {
	card    Card
	clock   Clock
	opt     Options
	start   time.Duration
	tick    time.Duration // interval of the energy counter's steps, from the self-test
	gap     time.Duration // shortest time between two readings of the counter
	idle    float64       // watts of the gaps between bursts; 0: there are none
	quick   bool          // the instant power sensor shows the power of one window
	monitor *Monitor
	again   []string // disturbances after which a window was measured again
	// seen has the latest window of each load; last is the latest window of any load.
	seen   map[string]Window
	last   Window
	stage  string        // current
	staged time.Duration // when it began
}

// NewMeter returns a meter for a card. It runs nothing. The error is that of [Options.Validate].
func NewMeter(card Card, opt Options) (*Meter, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if card == nil {
		return nil, errors.New("no card: open one with Open or NewSim")
	}
	opt = opt.withDefaults()
	m := &Meter{card: card, clock: opt.Clock, opt: opt, start: opt.Clock.Now(), tick: usualTick, seen: map[string]Window{}, monitor: NewMonitor(card, ownPID(opt))}
	return m, nil
}

// length returns the length of a window.
func (m *Meter) length() time.Duration { return max(m.opt.Window, 5*m.tick) }

// windowOf returns the length of a window for executions of this many seconds: at least ten executions, so that
// every part of the work is measured.
func (m *Meter) windowOf(each float64) time.Duration { return max(m.length(), seconds(10*each)) }

// usualTick is the energy counter's tick until the self-test has measured it.
const usualTick = 100 * time.Millisecond

func (m *Meter) since(t time.Duration) time.Duration { return m.clock.Now() - t }

// beginStage reports that a stage begins.
func (m *Meter) beginStage(name string) {
	m.stage, m.staged = name, m.clock.Now()
	m.tell()
}

// tell calls Options.Progress. Only stageMeasure has a known length.
func (m *Meter) tell() {
	if m.opt.Progress == nil {
		return
	}
	e := Event{Stage: m.stage}
	if m.stage == stageMeasure {
		e.Done, e.Total = int64(min(m.since(m.staged), m.opt.Time)), int64(m.opt.Time)
	}
	m.opt.Progress(e)
}

// Stages of a comparison.
const (
	stageSelfTest = "self-test"
	stageWarmUp   = "warm-up"
	stageMeasure  = "measure"
)
