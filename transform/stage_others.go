package transform

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// copyOthers takes over all that is in the model's folder beside the weights, with permissions. The
// manifest of an earlier conversion is kept inside the new one instead.
func (c *conversion) copyOthers(ctx context.Context, st *stage) error {
	if c.model.Others == nil {
		return nil // a single file
	}
	if err := makeSubfolders(c.model.Dir, st.dir); err != nil {
		return err
	}
	for _, name := range c.model.Others {
		if err := ctx.Err(); err != nil {
			return err
		}
		if name == ManifestName {
			continue
		}
		if err := c.copyOther(st, filepath.FromSlash(name)); err != nil {
			return err
		}
	}
	return nil
}

// makeSubfolders makes the subfolders of from in to as well, empty ones too.
func makeSubfolders(from, to string) error {
	from, err := filepath.EvalSymlinks(from) // WalkDir does not enter a link
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == from {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		made := filepath.Join(to, rel)
		return errors.Join(os.MkdirAll(made, 0o777), syncDir(filepath.Dir(made)))
	})
}

func (c *conversion) copyOther(st *stage, name string) error {
	path := filepath.Join(c.model.Dir, name)
	src, err := os.Open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	to := st.path(name)
	err = durably(to, func(f *os.File) error {
		if c.index != nil && path == c.model.Index {
			_, err = f.Write(c.index)
		} else {
			_, err = io.Copy(f, src)
		}
		return errors.Join(err, keepMode(f, info.Mode().Perm()))
	})
	return errors.Join(err, syncDir(filepath.Dir(to)))
}

// keepMode sets permissions, where the file system has any.
func keepMode(f *os.File, perm fs.FileMode) error {
	err := f.Chmod(perm)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func writeFile(path string, data []byte) error {
	return durably(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// durably creates or replaces a file, and returns when it is on the disk.
func durably(path string, fill func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Sync(), f.Close())
}
