//go:build unix

package sweep

import (
	"io/fs"
	"os"
	"syscall"
)

// ownFile reports whether a file is this user's. Others can write files into the folder for temporary files.
func ownFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
