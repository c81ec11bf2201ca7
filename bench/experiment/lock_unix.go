//go:build unix

package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock keeps other processes from a setup's series: a file beside it. It goes with the process.
type lock struct{ file *os.File }

func acquire(folder string, s Setup) (*lock, error) {
	path := filepath.Join(folder, "."+s.String()+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: another process is measuring it: let it end, or choose other setups: %w", filepath.Join(folder, s.file()), err)
	}
	mine, err := f.Stat()
	there, gone := os.Stat(path)
	if err == nil && gone == nil && os.SameFile(mine, there) {
		return &lock{f}, nil
	}
	f.Close()
	if err == nil && (gone == nil || errors.Is(gone, fs.ErrNotExist)) {
		return acquire(folder, s) // the owner before ended, and removed the file that was opened here
	}
	return nil, errors.Join(err, gone)
}

func (l *lock) release() error { return errors.Join(os.Remove(l.file.Name()), l.file.Close()) }
