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

// open makes the temporary file of path under the one name that belongs to it. The process that makes the file locks it, so
// a file without a lock was left by a process that was killed, and is removed. Where that is impossible, or another process
// keeps the lock, the file gets a random name.
func open(path string) (*os.File, error) {
	name := hidden(path, suffix)
	for range 50 {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, permissions)
		if errors.Is(err, fs.ErrExist) {
			if !removeLeft(name) {
				time.Sleep(10 * time.Millisecond) // another process writes, or will do so for long
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := flock(f); (err == nil || lock.None(err)) && named(f) { // without locks nobody removes it
			return f, nil
		}
		if err := f.Close(); err != nil { // another process took it for a leftover, and removed it
			return nil, err
		}
	}
	return anyName(path)
}

// removeLeft removes the file of a process that was killed. It reports whether the name is free, or was for a moment.
func removeLeft(name string) bool {
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(name, os.O_RDWR|flags, 0) // NFS locks no file that is only read
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.OpenFile(name, os.O_RDONLY|flags, 0)
	}
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return flock(f) == nil && (!named(f) || os.Remove(name) == nil)
}

func flock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// named reports whether the file still has its name.
func named(f *os.File) bool {
	mine, err := f.Stat()
	if err != nil || !mine.Mode().IsRegular() {
		return false
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(mine, there)
}
