package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Temporary locks a name by a file in the folder for temporary files, which users share. busy describes the holder's
// work. If another process holds the lock, the error has busy as text and advises to wait. See [Acquire] for the end
// of the lock.
func Temporary(name, busy string) (*os.File, error) {
	f, err := Acquire(temporaryPath(name))
	if err != nil && !errors.Is(err, ErrHeld) {
		return nil, fmt.Errorf("no lock can be made in the folder for temporary files (set TMPDIR to another folder): %w", err)
	}
	return f, explain(err, busy)
}

// CheckTemporary returns the error of [Temporary] if another process holds the lock. It writes nothing.
func CheckTemporary(name, busy string) error { return explain(Check(temporaryPath(name)), busy) }

func temporaryPath(name string) string {
	return filepath.Join(os.TempDir(), "lowtoggle-"+name+".lock")
}

func explain(err error, busy string) error {
	if !errors.Is(err, ErrHeld) {
		return err
	}
	if pid := Holder(err); pid != "" { // without a number, the holder has just begun
		busy += fmt.Sprintf(" (pid %s)", pid)
	}
	return &busyError{busy + ": wait for it"}
}

// busyError is an ErrHeld with a text for the user.
type busyError struct{ text string }

func (e *busyError) Error() string { return e.text }
func (e *busyError) Unwrap() error { return ErrHeld }
