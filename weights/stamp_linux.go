package weights

import (
	"io/fs"
	"syscall"
)

// changed is the time of the last change of a file's data or inode.
func changed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
