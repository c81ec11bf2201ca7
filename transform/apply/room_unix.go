//go:build unix

package apply

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/lowtoggle/lowtoggle/weights"
)

// checkRoom returns an error if the disk of dir has less free space than need, in bytes.
func checkRoom(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return weights.FileErrorf(dir, "%w", err)
	}
	if st.Blocks == 0 { // such as /proc: making the folder fails, or the size is unknown
		return nil
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < need {
		return weights.FileErrorf(dir, "%w", noRoom{fmt.Errorf("the disk is too full: %d bytes are needed, and %d are free: free some space or choose another disk", need, free)})
	}
	return nil
}

// noRoom is an ENOSPC with its own text.
type noRoom struct{ error }

func (noRoom) Is(target error) bool { return target == unix.ENOSPC }
