//go:build !unix

package cli

import (
	"context"
	"os"
	"os/exec"
)

// lockFile locks nothing here: neither two sweeps of one card nor two calibrates of one file may run at a time.
func lockFile(string, string) (*os.File, error) { return nil, nil }

func checkFree(string, string) error { return nil }

func detach(*exec.Cmd) {}

func hangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
