//go:build unix

package apply

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// own gives a file the user and the group of its source.
func own(path string, source fs.FileInfo) error {
	want := source.Sys().(*syscall.Stat_t)
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if is := info.Sys().(*syscall.Stat_t); is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	err = os.Lchown(path, int(want.Uid), int(want.Gid))
	if errors.Is(err, syscall.EINVAL) { // this user namespace does not know the owner
		return nil
	}
	return err
}
