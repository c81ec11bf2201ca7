// Package exit classifies a command's errors: exit status, class, and the problem that --json prints.
package exit

import (
	"errors"
	"fmt"

	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Exit statuses. Scripts rely on them.
const (
	Done       = 0
	Failed     = 1 // input, I/O
	WrongUsage = 2
	Short      = 3 // done, but a check failed or a budget was not met
	NoGPU      = 4 // the command needs a GPU, and there is none

	TryAgain = 75 // a part of a conversion or a request to a bucket failed; the same command may succeed later (EX_TEMPFAIL)
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks an error as an error in the command line.
func Usage(err error) error { return usageError{err} }

// Usagef returns a usage error.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// ErrShort is the error of a command that finished, but a check failed or a budget was not met.
var ErrShort = errors.New("short of what was asked")

// Status returns the exit status for a command's error.
func Status(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrShort):
		return Short
	case errors.Is(err, apply.ErrTemporary), errors.Is(err, weights.ErrUnreachable):
		return TryAgain
	case errors.As(err, &usage), errors.Is(err, transform.ErrArgument):
		return WrongUsage
	case measure.NoGPU(err):
		return NoGPU
	}
	return Failed
}

// CloseAll is for defer. It calls all closers. If *err is nil, CloseAll sets *err to their first error.
func CloseAll(err *error, closers ...func() error) {
	for _, end := range closers {
		if failed := end(); *err == nil {
			*err = failed
		}
	}
}
