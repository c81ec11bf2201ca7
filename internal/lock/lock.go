// Package lock prevents several processes from working on the same thing at a time. A lock is a file that a process
// holds open. The lock ends with the last process that has the file open, however that process ends. A child that
// inherits the file still holds the lock after the parent has ended. (github.com/gofrs/flock does not expose its
// file, so a child cannot inherit the lock.)
//
// Systems other than Unix have no such locks. On these systems, Acquire and Check always succeed.
package lock

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrHeld is wrapped by errors if another process holds a lock.
var ErrHeld = errors.New("held by another process")

// None reports whether an error means that the file system has no locks, as on some shared file systems.
func None(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, errors.ErrUnsupported)
}

// held returns an ErrHeld with the process's number, if known.
func held(pid string) error {
	if pid == "" {
		return ErrHeld
	}
	return &holderError{pid}
}

type holderError struct{ pid string }

func (e *holderError) Error() string { return fmt.Sprintf("%v (pid %s)", ErrHeld, e.pid) }
func (e *holderError) Unwrap() error { return ErrHeld }

// Holder returns the process number in an ErrHeld; empty if there is none.
func Holder(err error) string {
	var h *holderError
	if errors.As(err, &h) {
		return h.pid
	}
	return ""
}
