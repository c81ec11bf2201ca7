//go:build !linux

package atomicfile

import "os"

// RenameNew renames a folder. These systems have no exclusive rename, and only reject a folder that is not empty. The
// caller makes the new name durable with SyncFolder.
func RenameNew(from, to string) error { return os.Rename(from, to) }
