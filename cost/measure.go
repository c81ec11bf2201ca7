package cost

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/weights"
)

// pieceBytes is what a worker counts between two looks at its context, well below a millisecond.
const pieceBytes = 1 << 20

// Measure counts a tensor's activity with the given number of workers (at least one), reading
// every byte once. The counts do not depend on the number. It fails where the dtype has no
// weights.Format, where the data's length does not fit the shape, and where ctx is done.
func Measure(ctx context.Context, t weights.Tensor, workers int) (Activity, error) {
	f, ok := t.DType.Format()
	if !ok {
		return Activity{}, fmt.Errorf("%s: tensor %q: activity of %s elements cannot be counted; only %s can",
			t.File, t.Name, t.DType, weights.FormatNames("and"))
	}
	l := newLanes(f)
	rows, cols := t.Matrix()
	rowBytes := cols * l.size
	if len(t.Data) != rows*rowBytes {
		return Activity{}, fmt.Errorf("%s: tensor %q: %d bytes of data for shape %v of %s, which needs %d",
			t.File, t.Name, len(t.Data), t.Shape, t.DType, rows*rowBytes)
	}
	sum, err := tallyParallel(ctx, l, t, rowBytes, workers)
	if err != nil {
		return Activity{}, fmt.Errorf("%s: tensor %q: counting activity: %w", t.File, t.Name, err)
	}
	var first, last uint64
	err = weights.Guard(t.File, func() error {
		edge := min(rowBytes, len(t.Data))
		first, last = l.zerosIn(t.Data[:edge]), l.zerosIn(t.Data[len(t.Data)-edge:])
		return nil
	})
	if err != nil {
		return Activity{}, err
	}
	return sum.activity(l, rows, cols, first, last), nil
}

// tallyParallel hands pieces of the data to workers as they come free.
func tallyParallel(ctx context.Context, l *lanes, w weights.Tensor, rowBytes, workers int) (tally, error) {
	var (
		sum  tally
		mu   sync.Mutex
		next atomic.Int64
	)
	data := w.Data
	pieces := (len(data) + pieceBytes - 1) / pieceBytes
	g, ctx := errgroup.WithContext(ctx)
	for range max(1, min(workers, pieces)) {
		g.Go(func() error {
			var t tally
			for ctx.Err() == nil {
				lo := int(next.Add(1)-1) * pieceBytes
				if lo >= len(data) {
					mu.Lock()
					defer mu.Unlock()
					sum.merge(t)
					return nil
				}
				err := weights.Guard(w.File, func() error {
					t.addSpan(l, data, rowBytes, lo, min(lo+pieceBytes, len(data)))
					return nil
				})
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := g.Wait()
	return sum, err
}
