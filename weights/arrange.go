package weights

import "errors"

// Arrange returns a file in memory, with tensors in the given order and a new header. data returns a tensor's elements, or
// nil if they do not exist yet. The elements may lie in another file's memory: closing the new file closes no other file.
// path names the file in messages. [File.Data] is empty. A name that appears twice is an error, and so are elements of a
// wrong length.
func Arrange(path string, tensors []Info, metadata map[string]string, data func(Info) []byte) (*File, error) {
	head, placed, err := EncodeHeader(tensors, metadata)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Tensors: placed, Metadata: metadata, mapped: head, head: len(head), byName: map[string]int{}}
	for i, t := range placed {
		if _, twice := f.byName[t.Name]; twice {
			return nil, &FormatError{File: path, Tensor: t.Name, Offset: -1, Msg: "appears twice"}
		}
		f.byName[t.Name] = i
		part := data(t)
		if part != nil && int64(len(part)) != t.Size() {
			return nil, errors.New("weights: Arrange: data do not fit tensor " + t.Name)
		}
		f.parts = append(f.parts, part)
	}
	f.arranged = true
	return f, nil
}
