package cost

import (
	"context"
	"fmt"
	"sync"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// pieceBytes is the unit of work. It takes well below a millisecond, so cancelling is prompt.
const pieceBytes = 1 << 20

// Measure counts a tensor's activity with the given number of workers (at least one). It reads every byte once. The
// counts do not depend on the number of workers. It returns an error if the dtype has no weights.Format, if the
// data's length does not fit the shape, or if ctx is done.
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
		return Activity{}, weights.TensorErrorf(t.File, t.Name, "counting activity: %w", err)
	}
	var first, last uint64
	err = weights.Guard(t.File, func() error {
		edge := min(rowBytes, len(t.Data))
		first, last = l.zerosIn(weights.Need(t.Data[:edge])), l.zerosIn(weights.Need(t.Data[len(t.Data)-edge:]))
		return nil
	})
	if err != nil {
		return Activity{}, err
	}
	return sum.activity(l, rows, cols, first, last), nil
}

// tallyParallel counts pieces of the data with several workers.
func tallyParallel(ctx context.Context, l *lanes, w weights.Tensor, rowBytes, workers int) (tally, error) {
	var (
		sum tally
		mu  sync.Mutex
	)
	data := w.Data
	err := parallel.Run(ctx, (len(data)+pieceBytes-1)/pieceBytes, workers, func(_ context.Context, i int) error {
		var t tally
		err := weights.Guard(w.File, func() error {
			weights.Need(data[max(0, i*pieceBytes-rowBytes):min((i+1)*pieceBytes, len(data))])
			t.addSpan(l, data, rowBytes, i*pieceBytes, min((i+1)*pieceBytes, len(data)))
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		sum.merge(t) // integers: any order gives the same sums
		return err
	})
	return sum, err
}
