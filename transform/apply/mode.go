package apply

import (
	"errors"
	"io/fs"
	"os"
)

// like gives a new file or folder the owner and the permissions of its source, if the operating system and the file system
// permit it.
func like(path string, source fs.FileInfo) error {
	return errors.Join(ignored(own(path, source)), ignored(os.Chmod(path, source.Mode().Perm())))
}

// likeFolder does the same for a folder. The owner can always write into it: files have to be added.
func likeFolder(path, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return errors.Join(ignored(own(path, info)), ignored(os.Chmod(path, info.Mode().Perm()|0o700)))
}

func ignored(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
