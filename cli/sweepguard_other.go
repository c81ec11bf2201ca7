//go:build !unix

package cli

import (
	"context"
	"os"
	"os/exec"
)

// lockCard locks nothing here: two sweeps of one card must not run at a time.
func lockCard(string) (*os.File, error) { return nil, nil }

func checkLock(string) error { return nil }

func detach(*exec.Cmd) {}

func hangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
