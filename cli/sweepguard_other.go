//go:build !unix

package cli

import (
	"context"
	"os/exec"
)

func detach(*exec.Cmd) {}

func hangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
