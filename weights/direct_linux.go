package weights

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// setDirect switches direct writes (O_DIRECT), which bypass the page cache, on or off.
func setDirect(f *os.File, on bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	flags &^= unix.O_DIRECT
	if on {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err
}

// reserve allocates size bytes for the file, so that a full disk is an error before the work begins.
func reserve(f *os.File, size int64) error {
	err := uninterrupted(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) { // not every file system supports it
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "reserve", Path: f.Name(), Err: err}
	}
	return nil
}

// uninterrupted repeats call while signals interrupt it (EINTR), for example the Go runtime's.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
