package profile

import (
	"errors"
	"fmt"
	"time"

	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// Event reports the progress of a measurement. The stages are "self-test", "timing", "warm-up", "runs" and "stitch".
// Only the stage "runs" has a number of steps.
type Event = progress.Event

// Options are the options of [Measure]. The zero value of a field means its default.
type Options struct {
	// Length is the duration of a run's work. With several products it is the duration of the first segment, and the
	// second segment takes half as long. Default 2 s.
	Length time.Duration
	// Runs is the number of runs of each launch sequence, 2 to 10000. Default: the number in FinGraV's Table I; see
	// [Guide].
	Runs int
	// Time limits the use of the card, including the self-test. No run starts that would end after the limit, except for
	// the first two runs. Computing the trace takes some seconds more. Default 3 min.
	Time time.Duration
	// Idle is the time without work between two runs. Up to 0.1 s is added to each pause, so that the runs start at
	// different phases of the sensors. Default 550 ms, at least 300 ms.
	Idle time.Duration
	// Bursts is the number of bursts of each length. The lengths are 10 to 50 ms. The bursts are run between the first
	// runs of a launch sequence; see [Bursts]. Default 0.
	Bursts int
	// Step is the length of the trace's cells. Default 2.5 ms, or half of Resolution if that is shorter.
	Step time.Duration
	// Resolution is the coarsest resolution that the trace may have while the card works; see
	// [stitch.Options]. Default: 50 ms or finer, finest where power changes. The default also applies if the readings do not support Resolution.
	Resolution time.Duration
	// Tolerance is the largest relative change of power that counts as steady. If the trace is less precise, a change
	// of up to three times Tolerance counts as steady; see [FindSteady]. Default 0.01.
	Tolerance float64
	// Resamples is the number of bootstrap resamples for the intervals. Default 100.
	Resamples int
	// Seed is the seed of the random numbers for the first phase, the order of launch sequences and the bootstrap.
	// Default 0.
	Seed uint64
	// Readings puts every reading of the golden runs into the result. Default: none.
	Readings bool
	// Self is the ID of this process, which does not count as another process on the card. Default 0: unknown.
	Self int
	// Date and Command are copied into the result.
	Date    time.Time
	Command string
	// Progress is called with each event, in the goroutine of Measure. Default: not called.
	Progress func(Event)
}

// finest and coarsest limit the option Resolution. A cell is half as long as the resolution, so a trace of two seconds
// has up to thousands of cells.
const finest, coarsest = 2 * time.Millisecond, time.Second

// margin is the time before and after a run's work in which the sensors are read. It is longer than a step of an energy counter.
const margin = 150 * time.Millisecond

// sensorPeriod is the period of the slowest sensors.
const sensorPeriod = 100 * time.Millisecond

func (o Options) withDefaults() Options {
	fill(&o.Length, 2*time.Second)
	fill(&o.Time, 3*time.Minute)
	fill(&o.Idle, 550*time.Millisecond)
	if o.Step == 0 {
		o.Step = 2500 * time.Microsecond
		if o.Resolution > 0 {
			o.Step = min(o.Step, o.Resolution/2)
		}
	}
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

// Validate returns all errors in the options, joined.
func (o Options) Validate() error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	o = o.withDefaults()
	lasting := o.Length >= 50*time.Millisecond && o.Length <= time.Minute
	check(lasting, "length %v: give 50ms to 1m", o.Length)
	check(o.Runs == 0 || o.Runs >= 2 && o.Runs <= 10000, "runs %d: give 2 to 10000", o.Runs)
	check(o.Time >= o.Length, "time %v: give at least the length of one run, %v", o.Time, o.Length)
	check(o.Idle >= 2*margin, "idle %v: give at least %v", o.Idle, 2*margin)
	check(o.Bursts == 0 || o.Bursts >= 2, "bursts %d: give at least 2 of each length, or 0", o.Bursts)
	fine := o.Resolution == 0 || o.Resolution >= finest && o.Resolution <= coarsest
	check(fine, "resolution %v: give %v to %v", o.Resolution, finest, coarsest)
	check(!lasting || !fine || o.Step >= 100*time.Microsecond && o.Step <= o.Length/10, "step %v: give 100µs to a tenth of the length, %v", o.Step, o.Length)
	check(o.Tolerance > 0 && o.Tolerance < 1, "tolerance %v: give a relative change between 0 and 1, such as 0.01", o.Tolerance)
	check(o.Resamples >= 2, "resamples %d: give at least 2, better 100", o.Resamples)
	return errors.Join(wrong...)
}
