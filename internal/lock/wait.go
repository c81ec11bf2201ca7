package lock

import (
	"context"
	"errors"
	"os"
	"time"
)

// Pauses between two attempts to get a lock that another process holds.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Wait is [Acquire], but waits while another process holds the lock. It calls waiting, which may be nil, before the
// first pause. unlock ends the lock and removes the file. Without locks on the file system, Wait succeeds at once.
// The error is Acquire's or ctx's.
func Wait(ctx context.Context, path string, waiting func()) (unlock func() error, err error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		f, err := Acquire(path)
		switch {
		case err == nil && f != nil:
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		case err == nil || None(err):
			return func() error { return nil }, nil
		case !errors.Is(err, ErrHeld):
			return nil, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}
