package synth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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
	if err := syncDir(tmp); err != nil {
		return err
	}
	// Checked again: renaming would replace an empty folder made meanwhile.
	if err := mustNotExist(dir); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return syncDir(parent)
}

func mustNotExist(dir string) error {
	switch _, err := os.Lstat(dir); {
	case err == nil:
		return fmt.Errorf("%s exists: remove it or choose another folder: %w", dir, fs.ErrExist)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

// writeDurably writes a new file and waits until it is on the disk.
func writeDurably(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes a folder's entries durable. Windows cannot flush a folder.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
