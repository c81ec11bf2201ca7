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

// Acquire locks the file at path, and writes this process's number into it. If there is no file, it creates one. If
// another process holds the file, the error wraps ErrHeld.
//
// Closing the file ends the lock, unless a child inherited the file. The file stays in its folder. The owner may
// remove it before closing it.
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
		case !ok: // the previous owner removed the opened file
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

// Check returns an error that wraps ErrHeld if a process holds the lock at path. It writes nothing. A file that this
// process may not read is no error.
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
		pid, _ := os.ReadFile(f.Name()) // empty if the holder has just begun
		return held(strings.TrimSpace(string(pid)))
	}
	return err
}

// current reports whether the file still has its name.
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

// open opens the file at path, and creates it if missing. In a folder that all users may write to, it follows no link
// and does not create a file where another user's file exists.
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
