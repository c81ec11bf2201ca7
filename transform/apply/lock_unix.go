//go:build unix

package apply

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder opens and locks a folder. It fails if another process holds the lock. The lock ends with the process.
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

// checkRoom returns an error if the disk of dir has no room for need bytes.
func checkRoom(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < need {
		return fmt.Errorf("%s: the disk is too full: %d bytes are needed, %d are free: free space or choose another disk", dir, need, free)
	}
	return nil
}
