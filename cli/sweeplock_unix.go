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

// lockCard keeps other sweeps from a card, whose power limit they would take for the original. The lock goes
// with the last process that has the file: the watchdog, where the sweep is killed. The file stays, as
// removing it would let two processes lock two files of one name.
func lockCard(id string) (*os.File, error) {
	path := lockPath(id)
	f, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("a lock against other sweeps of this card: %w", err)
	}
	err = tryLock(f, unix.LOCK_EX)
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

// checkLock fails where a sweep is running on a card. It writes nothing; a lock that this process may not
// read tells it nothing.
func checkLock(id string) error {
	f, err := os.OpenFile(lockPath(id), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	return errors.Join(tryLock(f, unix.LOCK_SH), f.Close())
}

func tryLock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		pid, _ := os.ReadFile(f.Name()) // empty when it has just begun
		return fmt.Errorf("another sweep is running on this card (pid %s): wait for it", strings.TrimSpace(string(pid)))
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
