package apply

import (
	"io/fs"
	"syscall"
)

// changed returns when the kernel last saw a change of a file's data, attributes or name, in nanoseconds since 1970.
func changed(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ctim.Nano()
	}
	return 0
}
