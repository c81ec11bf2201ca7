package cli

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// Exit statuses. Scripts rely on them.
const (
	exitDone   = 0
	exitFailed = 1 // input, I/O
	exitUsage  = 2
	exitShort  = 3 // done, but a check failed or a budget could not be met
	exitNoGPU  = 4 // no GPU where one was asked for
)

// usageError is an error in the command line itself.
type usageError struct{ error }

// usage marks an error as one in the command line.
func usage(err error) error { return usageError{err} }

// usagef returns a usage error.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errShort ends a command that did its work but missed what was asked for: a check failed, or a budget was not met.
var errShort = errors.New("short of what was asked")

// status returns the exit status for a command's error.
func status(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errShort):
		return exitShort
	case errors.As(err, &usage):
		return exitUsage
	case measure.NoGPU(err):
		return exitNoGPU
	}
	return exitFailed
}

// closing is for defer: it closes what a command opened, and keeps the first error.
func closing(err *error, closers ...func() error) {
	for _, end := range closers {
		if failed := end(); *err == nil {
			*err = failed
		}
	}
}
