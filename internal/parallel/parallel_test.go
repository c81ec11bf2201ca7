package parallel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// TestEachJobOnce: every job runs once, whatever the number of workers.
func TestEachJobOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 100} {
		for _, workers := range []int{-1, 0, 1, 3, 200} {
			ran := make([]atomic.Int32, n)
			if err := parallel.Run(t.Context(), n, workers, func(_ context.Context, i int) error { ran[i].Add(1); return nil }); err != nil {
				t.Fatal(err)
			}
			parallel.Do(n, workers, func(i int) { ran[i].Add(1) })
			for i := range ran {
				if got := ran[i].Load(); got != 2 {
					t.Errorf("%d jobs, %d workers: job %d ran %d times in two loops", n, workers, i, got)
				}
			}
		}
	}
}

// TestSpans: spans cover all numbers in order. All but the last have the given size.
func TestSpans(t *testing.T) {
	for _, c := range []struct {
		n, size int
		want    [][2]int
	}{
		{0, 3, nil}, {-1, 3, nil}, {1, 3, [][2]int{{0, 1}}}, {6, 3, [][2]int{{0, 3}, {3, 6}}}, {7, 3, [][2]int{{0, 3}, {3, 6}, {6, 7}}}, {2, 0, [][2]int{{0, 1}, {1, 2}}},
	} {
		var got [][2]int
		err := parallel.Spans(t.Context(), c.n, c.size, 1, func(_ context.Context, first, end int) error {
			got = append(got, [2]int{first, end})
			return nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d numbers by %d: %v (%v), want %v", c.n, c.size, got, err, c.want)
		}
	}
}

// TestEnded: the ends of a context are told from other errors.
func TestEnded(t *testing.T) {
	for err, want := range map[error]bool{nil: false, context.Canceled: true, context.DeadlineExceeded: true, fmt.Errorf("reading: %w", context.Canceled): true, errors.New("wrong"): false} {
		if got := parallel.Ended(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestWorkersBound: as many jobs run at a time as there are workers, and not more.
func TestWorkersBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 3
		var running, most atomic.Int32
		release := make(chan struct{})
		go func() {
			for range 10 {
				synctest.Wait() // every worker is in a job
				most.Store(max(most.Load(), running.Load()))
				release <- struct{}{}
			}
		}()
		parallel.Do(10, workers, func(int) {
			running.Add(1)
			<-release
			running.Add(-1)
		})
		if got := most.Load(); got != workers {
			t.Errorf("%d jobs ran at a time, want %d", got, workers)
		}
	})
}

// TestFirstError: an error ends the loop and the context of running jobs.
func TestFirstError(t *testing.T) {
	wrong := errors.New("wrong")
	for _, workers := range []int{1, 4} {
		var after atomic.Int32
		err := parallel.Run(t.Context(), 1000, workers, func(ctx context.Context, i int) error {
			switch {
			case i == 3:
				return wrong
			case i < 3:
				return nil
			}
			after.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, wrong) {
			t.Errorf("%d workers: error %v, want %v", workers, err, wrong)
		}
		if n := int(after.Load()); n >= workers {
			t.Errorf("%d workers: %d jobs began after the error", workers, n)
		}
	}
}

// TestContextEnds: a context that has ended runs no job.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, workers := range []int{1, 4} {
		err := parallel.Run(ctx, 5, workers, func(context.Context, int) error { t.Error("a job ran"); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d workers: error %v", workers, err)
		}
	}
}
