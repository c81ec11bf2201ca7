//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreFileSizeSignal lets a write beyond the allowed file size fail with an error, so that it
// is handled like a full disk.
func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
