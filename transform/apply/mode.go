package apply

import (
	"errors"
	"io/fs"
	"os"

	"github.com/lowtoggle/lowtoggle/weights"
)

// like gives a new file or folder the owner and the permissions of its source, as far as the system permits.
func like(path string, source fs.FileInfo) error {
	return errors.Join(ignored(own(path, source)), ignored(os.Chmod(path, source.Mode().Perm())))
}

// likeFolder does the same for a folder. The owner always gets write permission, because files are added later.
func likeFolder(path, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return errors.Join(ignored(own(path, info)), ignored(os.Chmod(path, info.Mode().Perm()|0o700)))
}

// likeFile gives a file the owner and the permissions of a file of the source. A source in an object store has none.
func likeFile(path, source string) error {
	if weights.IsURL(source) {
		return nil
	}
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return like(path, info)
}

// likeSource gives a folder the owner and permissions of the model's folder. A source in an object store has none.
func (c *conversion) likeSource(path string) error {
	if !c.Model.OnDisk() {
		return nil
	}
	return likeFolder(path, c.Model.Dir)
}

// createLike begins a shard with the owner and the permissions of a source shard.
func createLike(path string, src *weights.File, head []byte, dataLen int64) (*weights.Writer, error) {
	f, err := weights.Create(path, head, dataLen)
	if err != nil {
		return nil, err
	}
	if err := likeFile(path, src.Path); err != nil {
		f.Abort()
		return nil, err
	}
	return f, nil
}

func ignored(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
