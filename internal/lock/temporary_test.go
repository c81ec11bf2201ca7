//go:build unix

package lock_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

// TestTemporary: locking a held name is an error with the holder's work and process number. Another name is free, and
// so is the name after Close.
func TestTemporary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const busy = "another painter is at the wall"
	f, err := lock.Temporary("wall", busy)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s (pid %d): wait for it", busy, os.Getpid())
	if _, err := lock.Temporary("wall", busy); !errors.Is(err, lock.ErrHeld) || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if err := lock.CheckTemporary("wall", busy); !errors.Is(err, lock.ErrHeld) || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	if err := lock.CheckTemporary("floor", busy); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lock.CheckTemporary("wall", busy); err != nil {
		t.Error(err)
	}
	t.Setenv("TMPDIR", "/nowhere")
	if _, err := lock.Temporary("wall", busy); err == nil || errors.Is(err, lock.ErrHeld) {
		t.Error(err)
	}
}
