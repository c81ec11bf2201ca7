// Package lock keeps processes from working on the same thing at a time. A lock is a file that a process
// holds open. It ends with the last process that has the file open, however that process ends; a child
// that inherits the file holds the lock after its parent has gone. (github.com/gofrs/flock keeps its file
// to itself, so a child cannot inherit it.)
//
// Systems other than Unix have no such locks: there, Acquire and Check always succeed.
package lock

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrHeld is wrapped where another process holds a lock.
var ErrHeld = errors.New("held by another process")

// None reports whether an error says that the file system has no locks, as some that machines share.
func None(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, errors.ErrUnsupported)
}

// held is an ErrHeld, with the process's number where it is known.
func held(pid string) error {
	if pid == "" {
		return ErrHeld
	}
	return &holderError{pid}
}

type holderError struct{ pid string }

func (e *holderError) Error() string { return fmt.Sprintf("%v (pid %s)", ErrHeld, e.pid) }
func (e *holderError) Unwrap() error { return ErrHeld }

// Holder is the process number of the holder, as an ErrHeld tells it; empty where it does not.
func Holder(err error) string {
	var h *holderError
	if errors.As(err, &h) {
		return h.pid
	}
	return ""
}
