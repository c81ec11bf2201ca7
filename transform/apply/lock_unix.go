//go:build unix

package apply

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder opens a folder, and fails where another process holds it. The lock goes with the
// process.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkRoom is an error where the disk of dir has no room for need bytes.
func checkRoom(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < need {
		return fmt.Errorf("%s: the disk is too full: %d bytes are needed, %d are free", dir, need, free)
	}
	return nil
}
