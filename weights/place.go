package weights

import (
	"io"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
)

// place is a model's folder on a disk or in an object store. Names are slash-separated and relative to the folder. The error for
// a missing file is fs.ErrNotExist.
type place interface {
	// list returns all files below the folder, sorted.
	list() ([]string, error)
	// path returns a file's path or URL for messages.
	path(name string) string
	// read returns a file's contents. A file of more than most bytes is an error.
	read(name string, most int64) ([]byte, error)
	// reader reads a file from its start.
	reader(name string) (io.ReadCloser, error)
	// size returns a file's length in bytes.
	size(name string) (int64, error)
	// open opens safetensors files.
	open(names []string) ([]*File, error)
}

// disk is a folder on a disk.
type disk string

func (d disk) list() ([]string, error) { return listFiles(string(d)) }

func (d disk) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d disk) read(name string, most int64) ([]byte, error) {
	return bounded.ReadFile(d.path(name), most)
}

func (d disk) reader(name string) (io.ReadCloser, error) { return os.Open(d.path(name)) }

func (d disk) size(name string) (int64, error) {
	st, err := os.Stat(d.path(name))
	if err != nil {
		return 0, err
	}
	if !st.Mode().IsRegular() {
		return 0, FileErrorf(d.path(name), "is not a regular file: give a file, not a folder, pipe or device")
	}
	return st.Size(), nil
}

func (d disk) open(names []string) ([]*File, error) {
	files, errs := make([]*File, len(names)), make([]error, len(names))
	parallel.Do(len(names), 0, func(i int) { files[i], errs[i] = OpenFile(d.path(names[i])) })
	for _, err := range errs {
		if err != nil {
			for _, f := range files {
				if f != nil {
					f.Close()
				}
			}
			return nil, err
		}
	}
	return files, nil
}

// Path returns the path or URL of a file of the model's folder, for messages. name is slash-separated and relative to
// [Model.Dir].
func (m *Model) Path(name string) string { return m.place.path(name) }

// ReadFile returns the contents of a file in the model's folder. A file of more than most bytes is an error. The error for a
// missing file is fs.ErrNotExist.
func (m *Model) ReadFile(name string, most int64) ([]byte, error) { return m.place.read(name, most) }

// Reader returns a reader of a file in the model's folder. The error for a missing file is fs.ErrNotExist.
func (m *Model) Reader(name string) (io.ReadCloser, error) { return m.place.reader(name) }

// FileSize returns the length in bytes of a file in the model's folder. The error for a missing file is fs.ErrNotExist.
func (m *Model) FileSize(name string) (int64, error) { return m.place.size(name) }

// OnDisk reports whether the model lies on a disk, not in an object store.
func (m *Model) OnDisk() bool {
	_, ok := m.place.(disk)
	return ok
}
