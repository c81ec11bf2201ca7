package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"unsafe"
)

// ErrShardMissing marks an index that names a shard that does not exist.
var ErrShardMissing = errors.New("which is missing")

// FormatError is an error in a file's contents.
type FormatError struct {
	File   string
	Tensor string // "" where no tensor is concerned
	Offset int64  // byte in the file; -1 if the error has no single place
	Msg    string
}

func (e *FormatError) Error() string {
	s := e.File
	if e.Tensor != "" {
		s += fmt.Sprintf(": tensor %q", e.Tensor)
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf(": byte %d", e.Offset)
	}
	return s + ": " + e.Msg
}

// PlaceError is an error about a file, a folder, or a tensor in a file. Its text begins with the path and the tensor's name.
type PlaceError struct {
	File   string
	Tensor string // "" where no tensor is concerned
	Err    error
}

func (e *PlaceError) Error() string {
	s := e.File
	if e.Tensor != "" {
		s += fmt.Sprintf(": tensor %q", e.Tensor)
	}
	return fmt.Sprintf("%s: %v", s, e.Err)
}

func (e *PlaceError) Unwrap() error { return e.Err }

// FileErrorf returns a [PlaceError] about a file or folder. format and args are as in fmt.Errorf.
func FileErrorf(file, format string, args ...any) error {
	return &PlaceError{File: file, Err: fmt.Errorf(format, args...)}
}

// TensorErrorf returns a [PlaceError] about a tensor in a file. format and args are as in fmt.Errorf.
func TensorErrorf(file, tensor, format string, args ...any) error {
	return &PlaceError{file, tensor, fmt.Errorf(format, args...)}
}

// Absent returns a [PlaceError] for a file or folder that does not exist. text is the message, with the next step for the
// user. errors.Is finds fs.ErrNotExist in the error.
func Absent(path, text string) error { return &PlaceError{File: path, Err: absent(text)} }

// absent is the text of an error that errors.Is takes for fs.ErrNotExist.
type absent string

func (a absent) Error() string      { return string(a) }
func (absent) Is(target error) bool { return target == fs.ErrNotExist }

// ErrNoModel is the error of functions that are given a nil model.
var ErrNoModel = errors.New("no model was given: open a model with weights.Open")

// ErrNoStore is the error of functions that are given a nil [Store].
var ErrNoStore = errors.New("no object store was given: open a store with bucket.Open")

// errNoFunction is the error of functions that are given a nil function to call.
var errNoFunction = errors.New("no function was given: give the function to call")

// Usable returns an error if the model is nil, has no file with tensors, or is closed. Every function that takes a model calls
// Usable.
func (m *Model) Usable() error {
	switch {
	case m == nil:
		return ErrNoModel
	case len(m.Shards) == 0:
		return errors.New("the model has no files: open a model with weights.Open")
	}
	for _, f := range m.Files() {
		if f.closed {
			return FileErrorf(m.Dir, "the model is closed already: close a model only after its last use")
		}
	}
	return nil
}

// ErrFault is wrapped by errors of mapped memory that could not be read.
var ErrFault = errors.New("reading failed: the file was cut short or its disk failed: copy or download the file again")

// ErrUnreachable is wrapped by temporary errors of an object store or the network: the same request may succeed later.
var ErrUnreachable = errors.New("the store cannot be reached for now")

// Guard runs f, which reads mapped memory. A truncated file or a failing disk causes a memory fault in f. Guard returns the
// fault as an error that wraps [ErrFault]. The error's text begins with the argument what. Without Guard the process would
// crash.
func Guard(what string, f func() error) error {
	if f == nil {
		return errNoFunction
	}
	if remotes.Load() > 0 {
		defer pages.enter(nil)()
	}
	return guarded(what, f)
}

// GuardOf is [Guard] for a long task f that reads data, the Data of some tensors. Parts of data that f has passed to [Need]
// stay in memory until f ends. f must call Guard to read anything else.
func GuardOf(what string, data [][]byte, f func() error) error {
	if f == nil {
		return errNoFunction
	}
	if remotes.Load() > 0 {
		spans := []span{} // not nil, because nil would keep everything
		for _, b := range data {
			if len(b) > 0 {
				first := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
				spans = append(spans, span{first, first + uintptr(len(b))})
			}
		}
		defer pages.enter(spans)()
	}
	return guarded(what, f)
}

// guarded turns panics of Need and faults of mapped memory into errors.
func guarded(what string, f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		switch r := recover().(type) {
		case nil:
		case needFailed:
			err = r.err
		case interface{ Addr() uintptr }: // the runtime's memory fault
			err = &PlaceError{File: what, Err: ErrFault}
		default:
			panic(r)
		}
	}()
	return f()
}
