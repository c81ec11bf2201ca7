package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// File is an open safetensors file, mapped into memory.
type File struct {
	Path     string
	Tensors  []Info            // in the order of their data
	Metadata map[string]string // the header's __metadata__
	mapped   []byte
	stamp    Stamp // when the file was opened
	head     int   // length of the head: length field and JSON
	byName   map[string]int
	remote   *remote // memory of a file in an object store; else nil
	closed   bool
	arranged bool     // made by Arrange, in memory only
	parts    [][]byte // the tensors' data, if arranged
}

// OpenFile maps path and checks its header completely; it reads no tensor data. The caller closes
// the file. Errors about the contents are *FormatError.
func OpenFile(path string) (*File, error) {
	mapped, stamp, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, mapped: mapped, stamp: stamp}
	if err := f.checked(); err != nil {
		return nil, err
	}
	return f, nil
}

// checked reads and checks the header, and closes the file on an error.
func (f *File) checked() error {
	err := Guard(f.Path, f.readHeader)
	if err == nil {
		return nil
	}
	f.Close()
	var format *FormatError
	if errors.As(err, &format) {
		format.File = f.Path
	}
	return err
}

func (f *File) readHeader() error {
	switch size := len(f.mapped); {
	case size == 0:
		return &FormatError{Offset: -1, Msg: "the file is empty: download, copy or make it again"}
	case size < 8:
		return &FormatError{Offset: -1, Msg: fmt.Sprintf("the file has %d bytes, and a safetensors file has more than 8: %s", size, notSafetensors)}
	}
	n := binary.LittleEndian.Uint64(Need(f.mapped[:8]))
	switch {
	case n > MaxHeader:
		return &FormatError{Offset: 0, Msg: fmt.Sprintf("the header has %d bytes, but the format allows at most %d: %s", n, MaxHeader, notSafetensors)}
	case n > uint64(len(f.mapped)-8):
		return &FormatError{Offset: 0, Msg: fmt.Sprintf("the header needs a file of more than %d bytes, and this file has %d: %s", n+8, len(f.mapped), truncated)}
	}
	f.head = 8 + int(n)
	h, err := parseHeader(Need(f.mapped[8:f.head]), int64(len(f.mapped)-f.head))
	if err != nil {
		return err
	}
	f.Tensors, f.Metadata, f.byName = h.tensors, h.metadata, h.byName
	return nil
}

// Close unmaps the file; the Data of its tensors is invalid from then on.
func (f *File) Close() error {
	m := f.mapped
	f.mapped, f.parts, f.closed = nil, nil, true
	switch {
	case f.arranged:
		return nil
	case f.remote != nil:
		r := f.remote
		f.remote = nil
		if r.memory == nil {
			return nil
		}
		return r.close()
	}
	return unmap(m)
}

// Size returns the file's length in bytes.
func (f *File) Size() int64 { return int64(f.head) + f.DataSize() }

// DataSize returns the length of everything after the head, in bytes.
func (f *File) DataSize() int64 {
	if n := len(f.Tensors); n > 0 {
		return f.Tensors[n-1].End
	}
	return 0
}

// Head returns the file's bytes before the data: the length field and the JSON. Read them under [Guard].
func (f *File) Head() []byte { return Need(f.mapped[:f.head]) }

// Data returns everything after the head. The slice is the mapped file: read only, and read after [Need].
func (f *File) Data() []byte { return f.mapped[f.head:] }

// Tensor returns the tensor of a name; false if there is none.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.at(i), true
}

func (f *File) at(i int) Tensor {
	t := f.Tensors[i]
	if f.arranged {
		return Tensor{Info: t, Data: f.parts[i], File: f.Path}
	}
	return Tensor{Info: t, Data: f.Data()[t.Begin:t.End:t.End], File: f.Path}
}

// Each calls fn for every tensor in the order of the data and stops at the first error.
func (f *File) Each(fn func(Tensor) error) error {
	if fn == nil {
		return errNoFunction
	}
	for i := range f.Tensors {
		if err := fn(f.at(i)); err != nil {
			return err
		}
	}
	return nil
}

func mapFile(path string) ([]byte, Stamp, error) {
	st, err := os.Stat(path) // before opening, because opening a pipe would wait
	if err != nil {
		return nil, Stamp{}, err
	}
	if !st.Mode().IsRegular() {
		return nil, Stamp{}, FileErrorf(path, "is not a regular file: give a file, not a folder, pipe or device")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Stamp{}, err
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil {
		return nil, Stamp{}, err
	}
	if st.Size() == 0 {
		return nil, StampOf(st), nil // an empty file cannot be mapped; checked reports it
	}
	mapped, err := mmap(f, int(st.Size()))
	return mapped, StampOf(st), err
}
