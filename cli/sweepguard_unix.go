//go:build unix

package cli

import (
	"context"
	"os/exec"
	"os/signal"
	"syscall"
)

// detach gives a process a session of its own: what is sent to this one's group does not reach it.
func detach(p *exec.Cmd) { p.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// hangUp is a context that ends with the terminal, too, unless nohup said otherwise.
func hangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}
