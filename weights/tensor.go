package weights

import (
	"fmt"
	"math"
	"slices"
)

// Info is one entry of a safetensors header.
type Info struct {
	Name  string
	DType DType
	Shape []int // row-major; empty for a scalar
	// Begin and End are byte offsets into the file's data section, which starts after the header.
	Begin, End int64
}

// Len returns the number of elements; 1 for a scalar, 0 if a dimension is 0.
func (t Info) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Size returns the number of bytes.
func (t Info) Size() int64 { return t.End - t.Begin }

// Matrix returns the tensor's shape as a matrix in storage order: cols is the last dimension, and rows the product of all others.
// A vector is one column, so its elements are rows. An empty tensor is 0 by 0, because its other dimensions may be arbitrarily
// large.
func (t Info) Matrix() (rows, cols int) {
	switch {
	case t.Len() == 0:
		return 0, 0
	case len(t.Shape) == 0:
		return 1, 1
	case len(t.Shape) == 1:
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
	// Data is the mapped file's memory: read only, valid until the file is closed. Read it under [Guard], and after [Need].
	Data []byte
	// File is the file's path, for messages.
	File string
}

// byteLen returns the number of bytes that shape and dtype need. It returns an error if the number overflows, or if elements
// of less than a byte do not fill whole bytes.
func byteLen(d DType, shape []int) (int64, error) {
	if slices.Contains(shape, 0) {
		return 0, nil
	}
	bits := int64(d.Bits())
	for _, s := range shape {
		if s < 0 || bits > math.MaxInt64/int64(s) {
			return 0, fmt.Errorf("%s%v is more than a file can hold", d, shape)
		}
		bits *= int64(s)
	}
	if bits%8 != 0 {
		return 0, fmt.Errorf("%s%v takes %d bits, which do not fill whole bytes", d, shape, bits)
	}
	return bits / 8, nil
}

// Outline returns a tensor's name with "N" in place of every number. Tensors of the same kind in all layers have one outline.
func Outline(name string) string {
	var out []byte // nil while nothing has changed
	for from := 0; from <= len(name); {
		to := from
		digits := true
		for ; to < len(name) && name[to] != '.'; to++ {
			digits = digits && '0' <= name[to] && name[to] <= '9'
		}
		if digits = digits && to > from; digits && out == nil {
			out = append(make([]byte, 0, len(name)), name[:from]...)
		}
		end := min(to+1, len(name)) // including the dot
		switch {
		case digits:
			out = append(append(out, 'N'), name[to:end]...)
		case out != nil:
			out = append(out, name[from:end]...)
		}
		from = to + 1
	}
	if out == nil {
		return name
	}
	return string(out)
}
