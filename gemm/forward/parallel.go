package forward

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel calls f for 0 to n-1, on all workers, until one fails or ctx ends.
func (d *Decoder) parallel(ctx context.Context, n int, f func(i int) error) error {
	workers := d.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
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
				if err := f(i); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// rowRun is how many rows a worker takes at once.
const rowRun = 32

// rows calls f for the rows 0 to n-1.
func (d *Decoder) rows(ctx context.Context, n int, f func(row int)) error {
	return d.parallel(ctx, (n+rowRun-1)/rowRun, func(run int) error {
		for i := run * rowRun; i < min(n, (run+1)*rowRun); i++ {
			f(i)
		}
		return nil
	})
}
