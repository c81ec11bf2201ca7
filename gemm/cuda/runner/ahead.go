package runner

import (
	"context"
	"sync"
)

// aheadOf is the number of layers for which the host computes new weights while the card runs earlier layers.
const aheadOf = 8

// ahead calls use for 0 to n-1 in order, with the results of produce. Other goroutines call produce for at most the
// next most numbers. ahead returns when all goroutines have ended. Its error is that of the lowest number.
func ahead[T any](ctx context.Context, n, most int, produce func(ctx context.Context, i int) (T, error), use func(i int, v T) error) error {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	results := make([]chan result, n)
	start := func(i int) {
		results[i] = make(chan result, 1)
		running.Add(1)
		go func() {
			defer running.Done()
			v, err := produce(ctx, i)
			results[i] <- result{v, err}
		}()
	}
	for i := range min(n, most) {
		start(i)
	}
	for i := range n {
		r := <-results[i]
		results[i] = nil
		if r.err != nil {
			return r.err
		}
		if i+most < n {
			start(i + most)
		}
		if err := use(i, r.value); err != nil {
			return err
		}
	}
	return nil
}
