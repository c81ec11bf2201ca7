package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RenameNew renames a file or folder to a name that must be free. A name that is taken is an error, also
// where another process took it a moment ago; file systems without an exclusive rename still refuse a
// folder that is not empty. The caller makes it durable by SyncFolder.
func RenameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // not every file system has it
		return os.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
