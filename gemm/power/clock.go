package power

import (
	"context"
	"time"
)

// Clock is the time that a measurement lives in: the host's, or a simulated card's.
type Clock interface {
	// Now is monotonic and counts from an arbitrary moment.
	Now() time.Duration
	// Of says when a moment of the wall clock was, by this one.
	Of(time.Time) time.Duration
	// Sleep waits for d, or returns the context's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// HostClock is the host's monotonic clock.
func HostClock() Clock { return hostClock{time.Now()} }

type hostClock struct{ start time.Time }

func (c hostClock) Now() time.Duration { return time.Since(c.start) }

// Of goes by the wall clock as it is now: it may have been set or slewed since the start.
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
