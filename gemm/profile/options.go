package profile

import (
	"errors"
	"fmt"
	"time"
)

// Options of Take. The zero value of a field means its default.
type Options struct {
	// Length of a run's work. Where there are two products it is the first one's, and the second works
	// half as long. Default 2 s.
	Length time.Duration
	// Runs of each order of the products, 2 to 10000. Default: what table I advises, see [Guide].
	Runs int
	// Time that everything on the card may take, from the self-test on: no run is begun that would end later, but
	// for the first two. The curve takes some seconds more. Default 3 min.
	Time time.Duration
	// Idle is how long the card rests before a run. Up to a tenth of a second comes on top, so that runs
	// begin at every phase of the sensors. Default 400 ms, at least 200 ms.
	Idle time.Duration
	// Step is the length of the curve's cells. Default 2.5 ms.
	Step time.Duration
	// Resolution that the curve is to have from the work's start to its end; see [StitchOptions]. Default, and where
	// the readings do not carry it: 50 ms or finer, as they say, finest where power changes.
	Resolution time.Duration
	// Tolerance within which steady power stays, as a share; up to three of it where the curve cannot tell less, see
	// [FindSteady]. Default 0.01.
	Tolerance float64
	// Resamples of the bootstrap that makes the intervals. Default 100.
	Resamples int
	// Seed of the first phase, of the orders' succession and of the bootstrap. Default 0.
	Seed uint64
	// Readings puts every reading of the golden runs into the result. Default: none.
	Readings bool
	// Self is this process's number, to tell others from it. Default 0: unknown.
	Self int
	// Date and Command are copied into the result.
	Date    time.Time
	Command string
	// Events tells how the work goes on. Default: no one is told.
	Events Events
}

// Events are called while a profile is taken, in its goroutine. A nil function is not called.
type Events struct {
	// Stage begins: "self-test", "timing", "warm-up" or "stitch".
	Stage func(name string)
	// Run is done, the latest of so many.
	Run func(done, of int)
}

// lead is how long before a run's work, and after it, the sensors are asked: more than a step of an
// energy counter.
const lead = 150 * time.Millisecond

// phase is the period of the slowest sensors.
const phase = 100 * time.Millisecond

func (o Options) withDefaults() Options {
	fill(&o.Length, 2*time.Second)
	fill(&o.Time, 3*time.Minute)
	fill(&o.Idle, 400*time.Millisecond)
	fill(&o.Step, 2500*time.Microsecond)
	fill(&o.Tolerance, 0.01)
	fill(&o.Resamples, 100)
	return o
}

func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Validate lists everything that is wrong at once.
func (o Options) Validate() error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	o = o.withDefaults()
	lasting := o.Length >= 50*time.Millisecond && o.Length <= time.Minute
	check(lasting, "length %v: want 50ms to 1m", o.Length)
	check(o.Runs == 0 || o.Runs >= 2 && o.Runs <= 10000, "runs %d: want 2 to 10000", o.Runs)
	check(o.Time >= o.Length, "time %v: a single run takes more than its length, %v", o.Time, o.Length)
	check(o.Idle >= lead+50*time.Millisecond, "idle %v: want at least %v", o.Idle, lead+50*time.Millisecond)
	check(!lasting || o.Step >= 100*time.Microsecond && o.Step <= o.Length/10, "step %v: want 100µs to a tenth of the length, %v", o.Step, o.Length)
	check(o.Tolerance > 0 && o.Tolerance < 1, "tolerance %v: want a share between 0 and 1, as 0.01", o.Tolerance)
	check(o.Resamples >= 2, "resamples %d: want at least 2, better 100", o.Resamples)
	return errors.Join(wrong...)
}
