package weights

import "math"

// Info is one entry of a safetensors header.
type Info struct {
	Name  string
	DType DType
	Shape []int // row-major; empty for a scalar
	// Begin and End are byte offsets into the file's data section, which starts after the header.
	Begin, End int64
}

// Len is the number of elements; 1 for a scalar, 0 where a dimension is 0.
func (t Info) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Size is the number of bytes.
func (t Info) Size() int64 { return t.End - t.Begin }

// Matrix gives the tensor's shape as a matrix in storage order: the last dimension is cols, all
// before it are rows; a vector is one column, so that its elements are its rows.
func (t Info) Matrix() (rows, cols int) {
	switch len(t.Shape) {
	case 0:
		return 1, 1
	case 1:
		return t.Shape[0], 1
	}
	cols = t.Shape[len(t.Shape)-1]
	rows = 1
	for _, d := range t.Shape[:len(t.Shape)-1] {
		rows *= d
	}
	return rows, cols
}

// Tensor is a tensor of an open file.
type Tensor struct {
	Info
	// Data is the mapped file's memory: read only, valid until the file is closed.
	Data []byte
	// File is the file's path, for messages.
	File string
}

// byteLen is the number of bytes that shape and dtype need; ok is false where it overflows, or
// where sub-byte elements do not fill whole bytes.
func byteLen(d DType, shape []int) (n int64, ok bool) {
	n = int64(d.Bits())
	for _, s := range shape {
		if s == 0 {
			return 0, true
		}
	}
	for _, s := range shape {
		if n > math.MaxInt64/int64(s) {
			return 0, false
		}
		n *= int64(s)
	}
	return n / 8, n%8 == 0
}
