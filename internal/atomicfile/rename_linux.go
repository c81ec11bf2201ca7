package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RenameNew renames a file or folder to a name that must not exist. An existing name is an error, even if another
// process created it just before. File systems without an exclusive rename only reject a folder that is not empty.
// The caller makes the new name durable with SyncFolder.
func RenameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // not every file system supports this
		return os.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
