//go:build unix

package lock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Folder opens and locks a folder. If another process holds the lock, the error wraps ErrHeld. Folder tries for some
// milliseconds, because a Check of another process holds the lock for an instant. The lock ends with the
// process, or when the file is closed. The folder itself is locked, so the lock outlasts the folder's files and a
// renaming.
func Folder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	const tries = 10
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for n := 1; n < tries && errors.Is(err, unix.EWOULDBLOCK); n++ {
		time.Sleep(time.Millisecond)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		f.Close()
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			err = ErrHeld
		case errors.Is(err, unix.EBADF): // NFS cannot lock files that are open for reading only, such as folders
			err = errors.ErrUnsupported
		}
		return nil, err
	}
	return f, nil
}
