// Package parallel has the module's only parallel loop.
package parallel

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// ErrNoContext is the error for a nil context.
var ErrNoContext = errors.New("no context was given: give context.Background()")

// Run runs the jobs 0 to n-1, each once, on at most workers goroutines; workers below 1 stands for GOMAXPROCS. Jobs
// start in ascending order when goroutines become free. If results must not depend on the number of workers, each job
// should write to its own place, and the caller should sum in the jobs' order.
//
// Run returns the first error. After it, no further jobs start, and the context of running jobs ends. ctx is checked
// before each job. One worker, or one job, runs on the caller's goroutine.
func Run(ctx context.Context, n, workers int, job func(ctx context.Context, i int) error) error {
	if ctx == nil {
		return ErrNoContext
	}
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

// Spans is [Run] for the spans [first, end) of at most size numbers into which the numbers 0 to n-1 are cut. A size below 1 stands for 1.
func Spans(ctx context.Context, n, size, workers int, job func(ctx context.Context, first, end int) error) error {
	size = max(1, size)
	return Run(ctx, (n+size-1)/size, workers, func(ctx context.Context, i int) error {
		return job(ctx, i*size, min((i+1)*size, n))
	})
}

// Ended reports whether an error is the end of a context.
func Ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Do is Run for jobs that neither fail nor end early.
func Do(n, workers int, job func(i int)) {
	_ = Run(context.Background(), n, workers, func(_ context.Context, i int) error { // no job fails
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
