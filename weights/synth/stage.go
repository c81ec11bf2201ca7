package synth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
)

// stage calls fill with a new temporary folder beside dir, which gets dir's name if fill succeeds
// and is removed otherwise.
func stage(dir string, fill func(tmp string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := mustNotExist(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	tmp := filepath.Join(parent, fmt.Sprintf(".%s.partial-%d", filepath.Base(dir), os.Getpid()))
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	if err := fill(tmp); err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(tmp); err != nil {
		return err
	}
	// Checked again: not every system's rename refuses an empty folder that was made meanwhile.
	if err := mustNotExist(dir); err != nil {
		return err
	}
	if err := atomicfile.RenameNew(tmp, dir); err != nil {
		return err
	}
	return atomicfile.SyncFolder(parent)
}

func mustNotExist(dir string) error {
	switch _, err := os.Lstat(dir); {
	case err == nil:
		return fmt.Errorf("%s: %w: remove it or choose another folder", dir, fs.ErrExist)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}
