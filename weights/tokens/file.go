package tokens

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// File is a decoded token file.
type File struct {
	Path  string
	Parts []Part // in the order of the file
}

// Part is one tensor of a token file: N sequences of T tokens. The zero Part is empty.
type Part struct {
	Name      string
	N, T      int
	Sequences [][]int32 // N sequences of T tokens
}

// Path returns the path of the token file in a model folder, on a disk or in an object store.
func Path(dir string) string {
	const name = "tokens.safetensors"
	if weights.IsURL(dir) {
		return strings.TrimRight(dir, "/") + "/" + name
	}
	return filepath.Join(dir, name)
}

// Open reads a token file. Every tensor must have integers of 8 to 64 bits with values from 0 to 2^31-1, and the shape [n,
// T], or [T] for one sequence. T is at least 2. Errors about the contents are *weights.FormatError and name file, tensor,
// sequence and position. The error for a path that does not exist is fs.ErrNotExist.
func Open(path string) (*File, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, weights.Absent(path, "there is no such file: give a safetensors file with the integer tensors "+Calibration+" and "+Evaluation+" of shape [sequences, length]")
	}
	if err == nil && st.IsDir() {
		return nil, weights.FileErrorf(path, "is a folder, not a token file: give a file in it, such as %s", Path(path))
	}
	file, err := weights.OpenFile(path)
	if _, wrong := errors.AsType[*weights.FormatError](err); wrong {
		if is := weights.Recognise(path); is != "" {
			return nil, &weights.FormatError{File: path, Offset: -1, Msg: "is " + is + ", not tokens: docs/accuracy.md, \"Tokens of your own texts\", shows how to write a token file"}
		}
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(file)
}

// Read is [Open] for an open file, such as one in an object store. The result does not use file after Read returns.
func Read(file *weights.File) (*File, error) {
	if file == nil {
		return nil, errors.New("no token file was given: open a file with weights.OpenFile")
	}
	f := &File{Path: file.Path}
	err := file.Each(func(t weights.Tensor) error {
		part, err := decode(t)
		f.Parts = append(f.Parts, part)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(f.Parts) == 0 {
		return nil, &weights.FormatError{File: file.Path, Offset: -1, Msg: "has no tensors: store tokens as an integer tensor [sequences, length]"}
	}
	return f, nil
}

func decode(t weights.Tensor) (Part, error) {
	wrong := func(format string, args ...any) (Part, error) {
		return Part{}, &weights.FormatError{File: t.File, Tensor: t.Name, Offset: -1, Msg: fmt.Sprintf(format, args...)}
	}
	read := integers[t.DType]
	if read == nil {
		return wrong("is of type %s, as in a file of weights: name a token file, whose tensors hold integers, U8 to I64", t.DType)
	}
	p := Part{Name: t.Name, N: 1}
	switch len(t.Shape) {
	case 1:
		p.T = t.Shape[0]
	case 2:
		p.N, p.T = t.Shape[0], t.Shape[1]
	default:
		return wrong("has shape %v: store tokens as [sequences, length]", t.Shape)
	}
	if p.N == 0 {
		return wrong("has no sequences: store at least one")
	}
	if p.T < 2 {
		return wrong("has sequences of length %d: store sequences of at least two tokens, because tokens are predicted from earlier tokens", p.T)
	}
	values := make([]int32, t.Len())
	bad := -1
	err := weights.Guard(t.File, func() error {
		bad = read(values, weights.Need(t.Data))
		return nil
	})
	if err != nil {
		return Part{}, err
	}
	if bad >= 0 {
		return wrong("sequence %d, position %d: is not a token: tokens are from 0 to 2147483647", bad/p.T, bad%p.T)
	}
	for i := range p.N {
		p.Sequences = append(p.Sequences, values[i*p.T:(i+1)*p.T:(i+1)*p.T])
	}
	return p, nil
}
