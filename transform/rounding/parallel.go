package rounding

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel runs the jobs 0 to n-1, each once, and checks ctx before each.
func parallel(ctx context.Context, n, workers int, job func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(workers, n) {
		g.Go(func() error {
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
		})
	}
	return g.Wait()
}
