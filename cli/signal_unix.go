//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreFileSizeSignal makes a write beyond the file size limit fail with an error, like a full disk.
func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
