package forward

import (
	"context"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// rowRun is how many rows a worker takes at once.
const rowRun = 32

// rows calls f for the rows 0 to n-1.
func (d *Decoder) rows(ctx context.Context, n int, f func(row int)) error {
	return parallel.Run(ctx, (n+rowRun-1)/rowRun, d.Workers, func(_ context.Context, run int) error {
		for i := run * rowRun; i < min(n, (run+1)*rowRun); i++ {
			f(i)
		}
		return nil
	})
}
