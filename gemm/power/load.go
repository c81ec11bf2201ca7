package power

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Load is repeatable work for the card: a GEMM, or a graph of the GEMMs of a model.
//
// Executions run in the order in which they were queued, one at a time. One execution should last at most a hundredth
// of a window. A window does not contain a whole number of executions, so variations of power within an execution
// become noise.
type Load interface {
	// Name is unique within a comparison.
	Name() string
	// Start begins n executions, back to back, and returns at once. The card must not wait for the host between
	// executions. The meter calls Start again only after Wait.
	Start(n int) error
	// Wait returns when all executions are done. When the context ends, it returns the context's error and drops
	// executions that are not yet queued on the card.
	Wait(ctx context.Context) error
}

// Timed is a Load whose duration is measured on the card.
type Timed interface {
	// Elapsed returns the duration of all executions of the last Start, by the card's clock (CUDA events). The meter
	// calls it after Wait.
	Elapsed() (time.Duration, error)
}

// Loads are the loads of a comparison.
type Loads struct {
	// Baseline is the load before the change.
	Baseline Load
	// Null does the same work as Baseline, on a copy of its operands. The difference between Null and Baseline shows
	// the error of the run.
	Null Load
	// Variants are the loads after the change.
	Variants []Load
	// Arrangements is the number of ways in which the loads can use the card's memory. Arrange establishes one of them,
	// counted from 0, while nothing runs. Successive blocks use successive arrangements. If every load is measured at
	// every set of addresses, the effects of addresses cancel in the ratios. Default: one arrangement, and Arrange is
	// not called.
	Arrangements int
	Arrange      func(ctx context.Context, arrangement int) error
}

// all lists the loads: baseline, null, variants.
func (l Loads) all() []Load { return append([]Load{l.Baseline, l.Null}, l.Variants...) }

func (l Loads) validate() error {
	if l.Baseline == nil || l.Null == nil {
		return fmt.Errorf("a comparison needs a baseline and a null load (the baseline's work on a copy of its operands)")
	}
	seen := map[string]bool{}
	for _, load := range l.all() {
		if seen[load.Name()] {
			return fmt.Errorf("two loads are named %q: give each its own name", load.Name())
		}
		seen[load.Name()] = true
	}
	return nil
}

// run is a series of back-to-back executions. The card is idle before and after it.
type run struct {
	m          *Meter
	load       Load
	executions int
	begin      time.Duration
}

// begin starts a run. The caller must call finish or abandon.
func (m *Meter) begin(load Load, executions int) (*run, error) {
	r := &run{m: m, load: load, executions: executions, begin: m.clock.Now()}
	if err := load.Start(executions); err != nil {
		return nil, fmt.Errorf("load %q: start %d executions: %w", load.Name(), executions, err)
	}
	return r, nil
}

// finish waits for the end of the run and returns the seconds per execution: by the card's clock if the load is Timed,
// else by the host's clock.
func (r *run) finish(ctx context.Context) (float64, error) {
	if err := r.load.Wait(ctx); err != nil {
		return 0, fmt.Errorf("load %q: wait: %w", r.load.Name(), err)
	}
	took := r.m.since(r.begin)
	if timed, ok := r.load.(Timed); ok {
		if elapsed, err := timed.Elapsed(); err == nil && elapsed > 0 {
			took = elapsed
		}
	}
	return took.Seconds() / float64(r.executions), nil
}

// abandon ends a run after a failure and ignores further errors.
func (r *run) abandon(ctx context.Context) { _ = r.load.Wait(ctx) }

// burst runs n executions and returns the seconds per execution.
func (m *Meter) burst(ctx context.Context, load Load, n int) (float64, error) {
	r, err := m.begin(load, n)
	if err != nil {
		return 0, err
	}
	return r.finish(ctx)
}

// executions returns how many executions of each seconds fill the time d.
func executions(d time.Duration, each float64) int {
	return max(1, int(math.Ceil(d.Seconds()/each)))
}

// estimate returns a load's seconds per execution. It doubles the number of executions until they last 20 ms, so that
// the loading of the kernels has no effect.
func (m *Meter) estimate(ctx context.Context, load Load) (float64, error) {
	const long = 0.020
	for n := 1; ; n *= 2 {
		seconds, err := m.burst(ctx, load, n)
		if err != nil {
			return 0, err
		}
		if seconds*float64(n) >= long && n > 1 || n >= 1<<20 {
			return seconds, nil
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
