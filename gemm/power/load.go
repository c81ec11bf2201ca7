package power

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Load is work for the card that can be repeated: a GEMM, or a graph of the GEMMs of a model.
//
// Executions run one after the other in the order in which they were queued. One execution should last at
// most a hundredth of a window. A window does not hold a whole number of executions, so variations of power
// within an execution become noise.
type Load interface {
	// Name is unique within a comparison.
	Name() string
	// Start begins n executions, back to back, and returns at once. The card must not wait for the host between
	// executions. The meter calls Start again only after Wait.
	Start(n int) error
	// Wait returns when all executions are done. When the context ends, it returns the context's error, and
	// executions that are not yet queued on the card are dropped.
	Wait(ctx context.Context) error
}

// Timed is a Load that measures its time on the card.
type Timed interface {
	// Elapsed returns the time of all executions of the last Start, by the card's clock (CUDA events). The meter
	// calls it after Wait.
	Elapsed() (time.Duration, error)
}

// Loads are the loads of a comparison.
type Loads struct {
	// Baseline is "before".
	Baseline Load
	// Null does the same work as Baseline, on a copy of its operands. Its difference from Baseline shows the
	// error of the run.
	Null Load
	// Variants are "after".
	Variants []Load
	// Arrangements is the number of ways in which the loads can use the card's memory, and Arrange establishes one of
	// them, counted from 0, while nothing runs. Blocks take the arrangements in turn. If every load has every address
	// in one of them, the comparison's ratios are free of the addresses' effects. Default: one, and Arrange is not
	// called.
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

// run is a number of back-to-back executions. The card is idle before and after.
type run struct {
	m          *Meter
	load       Load
	executions int
	begin      time.Duration
}

// begin starts a run. It must end with finish or abandon.
func (m *Meter) begin(load Load, executions int) (*run, error) {
	r := &run{m: m, load: load, executions: executions, begin: m.clock.Now()}
	if err := load.Start(executions); err != nil {
		return nil, fmt.Errorf("load %q: start %d executions: %w", load.Name(), executions, err)
	}
	return r, nil
}

// finish waits for the end and returns the seconds per execution: by the card's clock if the load is Timed,
// else by the host's.
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

// abandon ends a run after a failure. Its own error is ignored.
func (r *run) abandon(ctx context.Context) { _ = r.load.Wait(ctx) }

// burst runs n executions and returns the seconds per execution.
func (m *Meter) burst(ctx context.Context, load Load, n int) (float64, error) {
	r, err := m.begin(load, n)
	if err != nil {
		return 0, err
	}
	return r.finish(ctx)
}

// executions returns the number of executions of this length in seconds that fill d.
func executions(d time.Duration, each float64) int {
	return max(1, int(math.Ceil(d.Seconds()/each)))
}

// estimate returns a load's seconds per execution. It doubles the burst until the burst lasts 20 ms, so that
// loading the kernels does not count.
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
