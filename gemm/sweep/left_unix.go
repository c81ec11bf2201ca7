//go:build unix

package sweep

import (
	"io/fs"
	"os"
	"syscall"
)

// ownFile reports whether a file belongs to this user. Other users can write to the folder for temporary files.
func ownFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
