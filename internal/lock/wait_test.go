//go:build unix

package lock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

// TestWait: Wait waits until the holder of the lock ends. unlock removes the file.
func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held := acquire(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock.Wait(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: error %v", err)
	}
	waits := 0
	unlock, err := lock.Wait(t.Context(), path, func() {
		waits++
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil || waits != 1 {
		t.Fatalf("waited %d times, error %v", waits, err)
	}
	if err := lock.Check(path); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("the file is not locked: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
	if _, err := lock.Wait(t.Context(), filepath.Join(path, "none"), nil); err == nil || errors.Is(err, lock.ErrHeld) {
		t.Errorf("no folder: error %v", err)
	}
}
