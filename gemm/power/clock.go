package power

import (
	"context"
	"time"
)

// Clock is the clock of a measurement: the host's, or a simulated card's.
type Clock interface {
	// Now returns the time since an arbitrary start. It is monotonic.
	Now() time.Duration
	// Of converts a wall-clock time to this clock.
	Of(time.Time) time.Duration
	// Sleep waits for d, or returns the context's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// HostClock returns the host's monotonic clock.
func HostClock() Clock { return hostClock{time.Now()} }

type hostClock struct{ start time.Time }

func (c hostClock) Now() time.Duration { return time.Since(c.start) }

// Of uses the present offset of the wall clock, because the wall clock may have been set since the start.
func (c hostClock) Of(t time.Time) time.Duration {
	now := time.Now()
	return now.Sub(c.start) - now.Sub(t)
}

func (hostClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
