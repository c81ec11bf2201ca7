//go:build unix

package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Acquire locks the file at path, which it creates where it is missing, and writes this process's number
// into it. Where another process holds the file, the error wraps ErrHeld.
//
// Closing the file ends the lock, unless a child inherited it. The file stays in its folder; the owner may
// remove it before it closes it.
func Acquire(path string) (*os.File, error) {
	for {
		f, err := open(path)
		if err != nil {
			return nil, err
		}
		if err = try(f, unix.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		switch ok, err := current(f); {
		case err != nil:
			return nil, errors.Join(err, f.Close())
		case !ok: // the owner before removed the file that was opened here
			if err := f.Close(); err != nil {
				return nil, err
			}
			continue
		}
		if err = f.Truncate(0); err == nil {
			_, err = fmt.Fprintln(f, os.Getpid())
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
}

// Check returns an error that wraps ErrHeld where a process holds the lock at path. It writes nothing. A file that this process
// may not read is no error.
func Check(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	return errors.Join(try(f, unix.LOCK_SH), f.Close())
}

func try(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		pid, _ := os.ReadFile(f.Name()) // empty where the holder has just begun
		return held(strings.TrimSpace(string(pid)))
	}
	return err
}

// current says whether the file still has its name.
func current(f *os.File) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, named), err
}

// open makes the file where it is missing. In a folder that all users may write to it follows no link, and
// creates nothing where somebody's file is.
func open(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666); !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
