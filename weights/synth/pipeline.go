package synth

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// blockBytes is the number of bytes that are generated and written at a time, unless one row is longer.
const blockBytes = 4 << 20

// block is a run of whole rows of one tensor.
type block struct {
	tensor      *tensor
	first, rows int
	data        []byte
	done        chan struct{} // closed once data is filled
}

// pipeline generates blocks on several workers and passes their data to write in the blocks'
// order. No more than three blocks per worker are in memory.
func pipeline(ctx context.Context, workers int, blocks iter.Seq[*block], write func([]byte) error) error {
	inFlight := 3 * workers
	todo := make(chan *block, inFlight)
	order := make(chan *block, inFlight)
	buffers := make(chan []byte, inFlight) // bounds the number of blocks in the other channels
	for range inFlight {
		buffers <- nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { // assigns blocks to buffers as they become free
		defer close(order)
		defer close(todo)
		for b := range blocks {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case buf := <-buffers:
				b.data, b.done = resize(buf, b.bytes()), make(chan struct{})
				todo <- b
				order <- b
			}
		}
		return nil
	})
	for range workers {
		g.Go(func() error {
			fillAll(todo)
			return nil
		})
	}
	g.Go(func() error { // writes in order
		for b := range order {
			<-b.done
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := write(b.data); err != nil {
				return err
			}
			buffers <- b.data
		}
		return nil
	})
	return g.Wait()
}

// fillAll fills blocks until the channel closes. It is one worker.
func fillAll(todo <-chan *block) {
	var values []float32
	for b := range todo {
		values = resize(values, b.tensor.cols)
		b.tensor.fill(b.data, b.first, b.rows, values)
		close(b.done)
	}
}

// bytes returns the length of the block's data.
func (b *block) bytes() int { return b.rows * b.tensor.rowBytes() }

// resize returns a slice of length n, in s's memory where it is large enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
