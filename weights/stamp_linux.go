package weights

import (
	"io/fs"
	"syscall"
)

// changed returns the time of the last change of a file's data or inode, in ns since 1970.
func changed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
