//go:build unix

package transform

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock fails where another process holds the file. The lock goes with the process.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

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
