package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// pendingFile is a file that is being written beside path and that replaces it in the end.
type pendingFile struct {
	*os.File
	path         string
	closed, done bool
}

// pending opens a temporary file beside path. The temporary folder of the system would do too where it is
// on the same disk, but leftovers of a killed process would lie where nobody looks for them.
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

// anyName opens a temporary file of a name that no later process finds.
func anyName(path string) (*os.File, error) {
	for i := 0; ; i++ {
		f, err := os.OpenFile(randomName(path), os.O_RDWR|os.O_CREATE|os.O_EXCL, permissions)
		if !errors.Is(err, fs.ErrExist) || i == 100 {
			return f, err
		}
	}
}

// CloseAtomicallyReplace gives the file its name once its data is on the disk. The file is closed, and its lock ends, after that.
func (p *pendingFile) CloseAtomicallyReplace() error {
	if err := p.Sync(); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // renames no open file
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

// Cleanup removes a file that did not get its name.
func (p *pendingFile) Cleanup() error {
	switch {
	case p.done:
		return nil
	case runtime.GOOS == "windows" && !p.closed: // removes no open file
		return errors.Join(p.Close(), os.Remove(p.Name()))
	}
	err := os.Remove(p.Name())
	if !p.closed {
		err = errors.Join(err, p.Close())
	}
	return err
}

// hidden is the name beside path of a temporary file.
func hidden(path, suffix string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+suffix)
}
