//go:build !linux

package atomicfile

import "os"

// RenameNew renames a folder. Systems without an exclusive rename still refuse a name whose folder is not
// empty. The caller makes it durable by SyncFolder.
func RenameNew(from, to string) error { return os.Rename(from, to) }
