package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

// acquire locks a setup's series against other processes with a file beside it. The file is nil if the system has
// no locks.
func acquire(folder string, s Setup) (*os.File, error) {
	f, err := lock.Acquire(filepath.Join(folder, "."+s.String()+".lock"))
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("%s: another process is measuring this setup: wait until it ends, or choose other setups: %w", filepath.Join(folder, s.file()), err)
	}
	return f, err
}

// release ends the lock; f is nil if the system has no locks.
func release(f *os.File) error {
	if f == nil {
		return nil
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}
