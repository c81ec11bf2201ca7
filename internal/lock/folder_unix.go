//go:build unix

package lock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Folder opens and locks a folder. Where another process holds the lock, the error wraps ErrHeld. The lock ends with the process, or once the
// file is closed; it is on the folder itself, so it outlasts every file in it and a renaming.
func Folder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			err = ErrHeld
		case errors.Is(err, unix.EBADF): // NFS locks nothing that is open for reading alone, as folders are
			err = errors.ErrUnsupported
		}
		return nil, err
	}
	return f, nil
}
