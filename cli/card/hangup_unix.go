//go:build unix

package card

import (
	"context"
	"os/signal"
	"syscall"
)

// hangUp returns a context that also ends when the terminal closes, unless nohup ignores SIGHUP.
func hangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}
