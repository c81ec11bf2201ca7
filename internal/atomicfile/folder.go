package atomicfile

import (
	"os"
	"path/filepath"
)

// MakeFolder makes a folder and those that lead to it, and waits until their names are on the disk. A folder that is there may
// have been made by a process that was killed: its name is waited for, too.
func MakeFolder(folder string) error {
	folder = filepath.Clean(folder)
	parents := []string{filepath.Dir(folder)}
	for dir := parents[0]; ; {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
		parents = append(parents, dir)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for _, dir := range parents {
		if err := SyncFolder(dir); err != nil {
			return err
		}
	}
	return nil
}
