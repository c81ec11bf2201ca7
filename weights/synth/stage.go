package synth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/weights"
)

// stage calls fill with a new temporary folder beside dir, which gets dir's name if fill succeeds
// and is removed otherwise.
func stage(dir string, fill func(tmp string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := mustNotExist(dir); err != nil {
		return errors.Join(err, removeLeft(prefix(dir)))
	}
	parent := filepath.Dir(dir)
	tmp, held, err := temporary(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
		held.Close()
		err = errors.Join(err, removeLeft(prefix(dir))) // temporary folders of processes that were killed meanwhile
	}()
	if err := fill(tmp); err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(tmp); err != nil {
		return err
	}
	// A second check, because some systems' rename replaces an empty folder that was made meanwhile.
	if err := mustNotExist(dir); err != nil {
		return err
	}
	if err := atomicfile.RenameNew(tmp, dir); err != nil {
		return err
	}
	return atomicfile.SyncFolder(parent)
}

// prefix returns the beginning of the names of dir's temporary folders.
func prefix(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".partial-")
}

// temporary makes a locked folder beside dir. It first removes the folders of killed processes, whose locks are free.
func temporary(dir string) (tmp string, held *os.File, err error) {
	for pid := os.Getpid(); ; pid++ {
		if err := removeLeft(prefix(dir)); err != nil {
			return "", nil, err
		}
		tmp = prefix(dir) + strconv.Itoa(pid)
		err := os.Mkdir(tmp, 0o777)
		if errors.Is(err, fs.ErrExist) { // a process on another machine or in another container has the same number
			continue
		}
		if err != nil {
			return "", nil, err
		}
		held, err := lock.Folder(tmp)
		if err == nil || lock.None(err) { // without locks no other process removes the folder
			if _, err = os.Lstat(tmp); err == nil {
				return tmp, held, nil
			}
		}
		held.Close()
		// Before the lock, another process may have removed the folder as a leftover.
		if !errors.Is(err, lock.ErrHeld) && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, errors.Join(err, os.RemoveAll(tmp))
		}
	}
}

// removeLeft removes the unlocked folders whose names are prefix and a process number.
func removeLeft(prefix string) error {
	entries, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, found := strings.CutPrefix(e.Name(), filepath.Base(prefix))
		if _, err := strconv.ParseUint(number, 10, 64); !found || err != nil || !e.IsDir() {
			continue
		}
		left := prefix + number
		held, err := lock.Folder(left)
		if err != nil || held == nil {
			continue // in use, just renamed, or the system has no such locks
		}
		err = os.RemoveAll(left)
		held.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func mustNotExist(dir string) error {
	switch _, err := os.Lstat(dir); {
	case err == nil:
		return weights.FileErrorf(dir, "%w: choose another folder", fs.ErrExist)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}
