package power

import (
	"errors"
	"fmt"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// Options are the options of a Meter. The zero value of a field means its default.
type Options struct {
	// Precision is the half width that every 95 % interval must reach, as a share of the ratio. The comparison then
	// ends. Default 0.003.
	Precision float64
	// Time ends a comparison that has not reached Precision. It is counted from the first block, after self-test and
	// warm-up. Default 60 s.
	Time time.Duration
	// Window is the duration of one measurement. It is at least five steps of the energy counter. Default 1 s: at the
	// power cap, many short windows are less precise than a few long windows.
	Window time.Duration
	// Settle is the least time that a load runs before its window starts. Default 150 ms.
	Settle time.Duration
	// CapSettle is the settling time of a load that reaches the power cap from lower power. The card's power control
	// then overshoots and oscillates for seconds. Default 3 s.
	CapSettle time.Duration
	// WarmUp is the longest duration of the warm-up. Default 60 s.
	WarmUp time.Duration
	// SelfTest is the result of an earlier self-test of this card. Default: the self-test is run.
	SelfTest *SelfTest
	// Duty is the share of time that the baseline is busy, from [LeastDuty] to 1. Loads run in bursts with gaps, so
	// that the card's average power stays below its cap. Ratios are those of the bursts. Duty 1 runs loads back to back
	// and measures the multiprocessors' clock. [AutoDuty] selects the largest duty below the cap. Loads must be
	// [Paced]. Default 0: back to back.
	Duty float64
	// Seed is the seed of the order within blocks and of the bootstrap. Default 0.
	Seed uint64
	// EDSk is the parameter k of the energy-delay sum [EDS]. Default 2.
	EDSk float64
	// Clock is the measurement's clock. Default HostClock().
	Clock Clock
	// Self is the ID of this process, which warnings about other processes leave out. Default 0: unknown.
	Self int
	// Date and Command are copied into the result, Date in RFC 3339 format.
	Date    time.Time
	Command string
	// Progress is called at the start of each stage and after every window, in the meter's goroutine. Stages are
	// "self-test", "warm-up" and "measure". Stage "measure" counts nanoseconds of Time. Default: not called.
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
	check(o.Window >= 100*time.Millisecond, "window %v: give at least 100ms, preferably 1s", o.Window)
	check(o.Settle > 0, "settle %v: give more than 0", o.Settle)
	check(o.CapSettle > 0, "cap settle %v: give more than 0", o.CapSettle)
	check(o.WarmUp > 0, "warm-up %v: give more than 0", o.WarmUp)
	check(o.Duty == 0 || o.Duty >= LeastDuty && o.Duty <= 1 || o.Duty == AutoDuty, "duty %v: give a share of time from %v to 1", o.Duty, LeastDuty)
	check(o.EDSk > 1, "k %v of the energy-delay sum: give more than 1", o.EDSk)
	return errors.Join(wrong...)
}

// Meter measures loads on one card. It must not be used concurrently.
type Meter struct {
	card    Card
	clock   Clock
	opt     Options
	start   time.Duration
	tick    time.Duration // time between steps of the energy counter, from the self-test
	gap     pollGap
	idle    float64 // watts during the gaps between bursts; 0: no gaps
	quick   bool    // whether the instant power sensor shows the power of a single window
	monitor *Monitor
	again   []string // disturbances that led to a repetition of a window
	// seen has the latest window of each load; last is the latest window of any load.
	seen   map[string]Window
	last   Window
	stage  string        // current stage
	staged time.Duration // start of the current stage
}

// NewMeter returns a meter for a card. It measures nothing yet. The error is that of [Options.Validate].
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

// length returns the duration of a window.
func (m *Meter) length() time.Duration { return max(m.opt.Window, 5*m.tick) }

// windowOf returns the duration of a window for executions of each seconds. It is at least ten executions, so that
// every part of the work is measured.
func (m *Meter) windowOf(each float64) time.Duration { return max(m.length(), seconds(10*each)) }

// usualTick is the assumed tick of the energy counter before the self-test.
const usualTick = 100 * time.Millisecond

func (m *Meter) since(t time.Duration) time.Duration { return m.clock.Now() - t }

// beginStage reports the start of a stage.
func (m *Meter) beginStage(name string) {
	m.stage, m.staged = name, m.clock.Now()
	m.tell()
}

// tell calls Options.Progress. Only stageMeasure has a known duration.
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
