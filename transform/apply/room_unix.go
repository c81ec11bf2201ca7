//go:build unix

package apply

import (
	"fmt"

	"golang.org/x/sys/unix"
)

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
