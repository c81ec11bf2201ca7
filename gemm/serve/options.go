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
	// Precision is the half width that every 95 % interval of energy must reach, as a share of the ratio. The
	// comparison then ends. Default 0.003.
	Precision float64
	// Time ends a comparison that has not reached Precision. It is counted from the first block, which is always
	// completed. Default 10 minutes.
	Time time.Duration
	// Window is the least duration of one measurement. The window is extended to whole rounds; in a round every slot
	// produces as many tokens as one answer has. Default 10 s.
	Window time.Duration
	// Settle is the least time between the first request of a turn and its window. At the power cap, a card's power
	// control oscillates for seconds. Default 3 s.
	Settle time.Duration
	// Stall is the longest time that a request may wait for its next token. Default 60 s.
	Stall time.Duration
	// Tries is the number of attempts at a turn before the comparison fails. Default 3.
	Tries int
	// Seed is the seed of the prompts, the order within blocks and the bootstrap. Default 0.
	Seed uint64
	// Date and Command are copied into the result, Date in RFC 3339 format.
	Date    time.Time
	Command string
	// Transport carries the requests. Default: a copy of [http.DefaultTransport] with a connection for every request in
	// flight.
	Transport http.RoundTripper
	// Progress is called at the start of each stage and at every step of the energy counter, from one goroutine at a
	// time. Stages are "servers", "idle", "warm-up" and "measure". Stage "measure" counts nanoseconds of Time. Default:
	// not called.
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
	check(o.Precision > 0 && o.Precision < 1, "precision %v: give a share between 0 and 1, such as 0.003", o.Precision)
	check(o.Time > 0, "time %v: give more than 0", o.Time)
	check(o.Window >= time.Second, "window %v: give at least 1s, preferably 10s", o.Window)
	check(o.Settle > 0, "settle %v: give more than 0", o.Settle)
	check(o.Stall > 0, "stall %v: give more than 0", o.Stall)
	check(o.Tries > 0, "tries %d: give at least 1", o.Tries)
	return errors.Join(append(wrong, o.Workload.validate())...)
}

// transport returns the transport of the options, or the default transport with enough connections.
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
	t.DisableCompression = true // compression would delay tokens
	return t
}
