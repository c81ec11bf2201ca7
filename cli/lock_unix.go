//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lockFile holds a file that no other process may hold, else it says what that is busy with. It ends with the last
// process that has it open. The file stays, as removing it would let two processes lock two files of one name.
func lockFile(path, busy string) (*os.File, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("a lock against others, in the folder that TMPDIR names: %w", err)
	}
	err = tryLock(f, unix.LOCK_EX, busy)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkFree fails where a process holds a lock; one that this process may not read tells it nothing.
func checkFree(path, busy string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	return errors.Join(tryLock(f, unix.LOCK_SH, busy), f.Close())
}

func tryLock(f *os.File, how int, busy string) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		if pid, _ := os.ReadFile(f.Name()); len(pid) > 0 { // else it has just begun
			busy += fmt.Sprintf(" (pid %s)", strings.TrimSpace(string(pid)))
		}
		return fmt.Errorf("%s: wait for it", busy)
	}
	return err
}

// openLock makes the file where it is not there. In a folder that all may write to it follows no link, and
// creates nothing where somebody's file is.
func openLock(path string) (*os.File, error) {
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
