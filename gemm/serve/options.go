package serve

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// Options are the options of [Compare]. The zero value of a field means its default.
type Options struct {
	Workload Workload
	// Precision ends a comparison: the half width that every 95 % interval of energy must reach, as a share of the
	// ratio. Default 0.003.
	Precision float64
	// Time ends a comparison that has not reached Precision. It counts from the first block, which is measured to its
	// end. Default 10 minutes.
	Time time.Duration
	// Window is the least length of one measurement. It grows to whole rounds, in which every slot produces as many
	// tokens as one answer has. Default 10 s.
	Window time.Duration
	// Settle is the least time from the first request of a turn to its window: at the power cap, a card's power
	// control oscillates for seconds. Default 3 s.
	Settle time.Duration
	// Stall is the longest wait of a request for its next token. Default 60 s.
	Stall time.Duration
	// Tries is the number of attempts at a turn before the run ends. Default 3.
	Tries int
	// Seed sets prompts, the order within blocks and the bootstrap. Default 0.
	Seed uint64
	// Date and Command are copied into the result, Date in the format of RFC 3339.
	Date    time.Time
	Command string
	// Transport carries requests. Default: a copy of [http.DefaultTransport], with a connection for every request in flight.
	Transport http.RoundTripper
	// Progress gets an event when a stage begins and at every step of the energy counter, from one goroutine at a time.
	// Stages are "servers", "idle", "warm-up" and "measure"; the last counts nanoseconds of Time.
	Progress func(Event)

	client *http.Client
	clock  power.Clock
}

// Event reports the progress of a comparison.
type Event = progress.Event

func (o Options) withDefaults() Options {
	o.Workload = o.Workload.withDefaults()
	fill(&o.Precision, 0.003)
	fill(&o.Time, 10*time.Minute)
	fill(&o.Window, 10*time.Second)
	fill(&o.Settle, 3*time.Second)
	fill(&o.Stall, time.Minute)
	fill(&o.Tries, 3)
	return o
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
	check(o.Precision > 0 && o.Precision < 1, "precision %v: give a share between 0 and 1, as 0.003", o.Precision)
	check(o.Time > 0, "time %v: give more than 0", o.Time)
	check(o.Window >= time.Second, "window %v: give at least 1s, better 10s", o.Window)
	check(o.Settle > 0, "settle %v: give more than 0", o.Settle)
	check(o.Stall > 0, "stall %v: give more than 0", o.Stall)
	check(o.Tries > 0, "tries %d: give at least 1", o.Tries)
	return errors.Join(append(wrong, o.Workload.validate())...)
}

// transport returns the options' transport, or the default one with enough connections.
func (o Options) transport() http.RoundTripper {
	if o.Transport != nil {
		return o.Transport
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t := base.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, o.Workload.Concurrency
	t.DisableCompression = true // compression delays tokens
	return t
}
