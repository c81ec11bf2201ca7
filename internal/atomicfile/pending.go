package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// pendingFile is a file that is written beside path and replaces path at the end.
type pendingFile struct {
	*os.File
	path         string
	closed, done bool
}

// pending opens a temporary file beside path. It does not use the system's temporary folder, because users do not look there for files of killed processes.
func pending(path string) (*pendingFile, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	p := &pendingFile{File: f, path: path}
	there, err := os.Lstat(path)
	switch {
	case err == nil && there.Mode().IsRegular():
		err = f.Chmod(there.Mode().Perm())
	case err == nil || errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, p.Cleanup())
	}
	return p, nil
}

// anyName opens a temporary file with a random name, which no later process finds.
func anyName(path string) (*os.File, error) {
	for i := 0; ; i++ {
		f, err := os.OpenFile(randomName(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, permissions)
		if !errors.Is(err, fs.ErrExist) || i == 100 {
			return f, err
		}
	}
}

// CloseAtomicallyReplace renames the file to its final name when its data is on the disk. Then it closes the file,
// which also ends the lock.
func (p *pendingFile) CloseAtomicallyReplace() error {
	if err := p.Sync(); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // Windows cannot rename an open file
		p.closed = true
		if err := p.Close(); err != nil {
			return err
		}
	}
	if err := os.Rename(p.Name(), p.path); err != nil {
		return err
	}
	p.done = true
	if p.closed {
		return nil
	}
	return p.Close()
}

// Cleanup removes a file that did not get its final name.
func (p *pendingFile) Cleanup() error {
	switch {
	case p.done:
		return nil
	case runtime.GOOS == "windows" && !p.closed: // Windows cannot remove an open file
		return errors.Join(p.Close(), os.Remove(p.Name()))
	}
	err := os.Remove(p.Name())
	if !p.closed {
		err = errors.Join(err, p.Close())
	}
	return err
}

// hidden returns the name of a temporary file beside path.
func hidden(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}
