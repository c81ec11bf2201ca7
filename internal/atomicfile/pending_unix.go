//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

// open makes the temporary file of path, with a name derived from path. The process that makes the file locks it. A
// file without a lock was left by a killed process, and is removed. If the file cannot be locked, or another process
// keeps the lock, the file gets a random name.
func open(path string) (*os.File, error) {
	name := hidden(path, suffix)
	for range 50 {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, permissions)
		if errors.Is(err, fs.ErrExist) {
			if !removeLeft(name) {
				time.Sleep(10 * time.Millisecond) // another process is writing, perhaps for long
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := flock(f); err == nil || lock.None(err) { // without locks nobody removes the file
			if there, err := named(f); there || err != nil {
				return opened(f, err)
			}
		}
		if err := f.Close(); err != nil { // another process took the file for a leftover and removed it
			return nil, err
		}
	}
	return anyName(path)
}

// opened returns a new file. If err is not nil, it removes the file.
func opened(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	return f, nil
}

// removeLeft removes the file of a killed process. It reports whether the name is free, or was free for a moment.
func removeLeft(name string) bool {
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(name, os.O_RDWR|flags, 0) // NFS locks only files that are open for writing
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.OpenFile(name, os.O_RDONLY|flags, 0)
	}
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	if flock(f) != nil {
		return false
	}
	there, err := named(f)
	return err == nil && (!there || os.Remove(name) == nil)
}

func flock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// named reports whether the file still has its name.
func named(f *os.File) (bool, error) {
	mine, err := f.Stat()
	if err != nil || !mine.Mode().IsRegular() {
		return false, err
	}
	there, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}
