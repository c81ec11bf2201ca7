//go:build !linux

package transform

import "os"

// renameNew renames a folder; systems without an exclusive rename refuse a folder that is not
// empty all the same.
func renameNew(from, to string) error { return os.Rename(from, to) }
