// Package parallel holds the module's one parallel loop.
package parallel

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Run runs the jobs 0 to n-1, each once, on at most so many goroutines; workers below 1 stands for
// GOMAXPROCS. Jobs start in ascending order, as goroutines come free. A caller whose results must not
// depend on the number of workers lets each job write to a place of its own, and sums up afterwards in
// the jobs' order.
//
// Run returns the first error, and then starts no further jobs; the context that jobs get ends with it.
// ctx is checked before each job. One worker, or one job, runs on the caller's goroutine.
func Run(ctx context.Context, n, workers int, job func(ctx context.Context, i int) error) error {
	var next atomic.Int64
	work := func(ctx context.Context) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := job(ctx, i); err != nil {
				return err
			}
		}
	}
	if workers = min(Workers(workers), n); workers <= 1 {
		return work(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(func() error { return work(ctx) })
	}
	return g.Wait()
}

// Do is Run for jobs that neither fail nor end early.
func Do(n, workers int, job func(i int)) {
	_ = Run(context.Background(), n, workers, func(_ context.Context, i int) error { // nothing fails
		job(i)
		return nil
	})
}

// Workers returns the number of goroutines for a setting: the setting itself, or GOMAXPROCS if it is below 1.
func Workers(setting int) int {
	if setting < 1 {
		return runtime.GOMAXPROCS(0)
	}
	return setting
}
