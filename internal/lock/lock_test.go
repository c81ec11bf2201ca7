//go:build unix

package lock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

// TestOneHolder: a lock has one holder at a time, and others get the holder's process number.
func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := lock.Check(path); err != nil {
		t.Errorf("missing file: %v", err)
	}
	f := acquire(t, path)
	check := func(how string, err error) {
		t.Helper()
		if !errors.Is(err, lock.ErrHeld) || lock.Holder(err) != strconv.Itoa(os.Getpid()) {
			t.Errorf("%s: error %v", how, err)
		}
	}
	_, err := lock.Acquire(path)
	check("acquired twice", err)
	check("checked while held", lock.Check(path))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Check(path); err != nil {
		t.Errorf("after Close: %v", err)
	}
	if err := acquire(t, path).Close(); err != nil {
		t.Error(err)
	}
}

// TestRemoved: a lock whose file was removed does not block a new file of the same name.
func TestRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := acquire(t, path)
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again := acquire(t, path)
	defer again.Close()
	if _, err := lock.Acquire(path); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("the new file is not locked: %v", err)
	}
}

// TestChildHolds: a child that inherits the file holds the lock after its parent closed it.
func TestChildHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := acquire(t, path)
	child := exec.Command("cat")
	child.ExtraFiles = []*os.File{f}
	wait, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Acquire(path); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("while the child runs: %v", err)
	}
	if err := errors.Join(wait.Close(), child.Wait()); err != nil {
		t.Fatal(err)
	}
	if err := acquire(t, path).Close(); err != nil {
		t.Error(err)
	}
}

// TestNoLinks: in a folder that all users may write to, a link must not lead to another file.
func TestNoLinks(t *testing.T) {
	folder := t.TempDir()
	path, target := filepath.Join(folder, "lock"), filepath.Join(folder, "target")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	for _, exists := range []bool{false, true} {
		if exists {
			if err := os.WriteFile(target, []byte("data"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := lock.Acquire(path); err == nil || errors.Is(err, lock.ErrHeld) {
			t.Errorf("target exists %v: error %v", exists, err)
		}
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "data" {
		t.Errorf("the link's target: %q, %v", data, err)
	}
}

func acquire(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := lock.Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
