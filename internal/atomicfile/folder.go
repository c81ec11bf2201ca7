package atomicfile

import (
	"os"
	"path/filepath"
)

// MakeFolder makes a folder and its missing parents, and waits until their names are on the disk. It also waits for
// the name of an existing folder, because a killed process may have made the folder.
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
