package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// pendingFile is what renameio, which does not build on Windows, offers elsewhere.
type pendingFile struct {
	*os.File
	path         string
	closed, done bool
}

func pending(path string) (*pendingFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return nil, err
	}
	return &pendingFile{File: f, path: path}, nil
}

// CloseAtomicallyReplace gives the file its name once its data is on the disk.
func (p *pendingFile) CloseAtomicallyReplace() error {
	if err := p.Sync(); err != nil {
		return err
	}
	p.closed = true
	if err := p.Close(); err != nil {
		return err
	}
	if err := os.Rename(p.Name(), p.path); err != nil {
		return err
	}
	p.done = true
	return nil
}

// Cleanup removes a file that did not get its name.
func (p *pendingFile) Cleanup() error {
	if p.done {
		return nil
	}
	var err error
	if !p.closed {
		err = p.Close()
	}
	return errors.Join(err, os.Remove(p.Name()))
}
