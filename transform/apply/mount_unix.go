//go:build unix

package apply

import (
	"os"
	"path/filepath"
	"syscall"
)

// mounted reports whether dir is the root of a mounted disk.
func mounted(dir string) bool {
	own, err := os.Stat(dir)
	if err != nil {
		return false
	}
	above, err := os.Stat(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return false
	}
	a, ok := own.Sys().(*syscall.Stat_t)
	b, ok2 := above.Sys().(*syscall.Stat_t)
	return ok && ok2 && a.Dev != b.Dev
}
