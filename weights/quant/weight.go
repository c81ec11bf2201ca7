package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Weight is one matrix of numbers, stored in one tensor or several. It is read-only. Several goroutines may call its methods
// until its model is closed.
type Weight struct {
	// Name is the weight's name in plans, layouts and reports: the tensor's name if it has one part, and its name in an unquantised
	// checkpoint if it is quantised.
	Name string
	// DType is the type of the weight's values; F32 for a quantised weight.
	DType weights.DType
	// Shape is the shape of the weight's values.
	Shape []int
	// Rows and Cols are Shape as a matrix in storage order, as [weights.Info.Matrix] gives it. Values whose rows do not fill
	// whole bytes are a single row.
	Rows, Cols int
	// Unit is the number of rows that StoreRows takes at a time: every call has a multiple of Unit rows, or all remaining ones.
	// It is 1 for an unquantised weight.
	Unit int
	// Adapter is true for a weight of the adapter in the model's folder.
	Adapter bool
	// Parts are the tensors that store the weight; for a quantised weight, the codes come first.
	Parts []Part
	// Quantised describes the codes of a quantised weight; nil for any other weight.
	Quantised *Quantised
}

// Part is one tensor of a weight.
type Part struct {
	weights.Tensor
	// Shard is the place in [weights.Model.Files] of the file that holds the tensor.
	Shard int
}

// plain returns the weight of an unquantised tensor.
func plain(t weights.Tensor, shard int) *Weight {
	w := &Weight{Name: t.Name, DType: t.DType, Shape: t.Shape, Unit: 1, Parts: []Part{{t, shard}}}
	if w.Rows, w.Cols = t.Matrix(); w.Cols*t.DType.Bits()%8 != 0 {
		w.Rows, w.Cols = 1, t.Len()
	}
	return w
}

// logical returns the weight of a quantised weight that can be read.
func logical(q *Quantised) *Weight {
	w := &Weight{Name: q.Name, DType: weights.F32, Shape: q.Shape, Unit: 1, Quantised: q}
	w.Rows, w.Cols = weights.Info{Shape: q.Shape}.Matrix()
	for _, t := range q.Tensors {
		w.Parts = append(w.Parts, t.Part)
	}
	return w
}

// readRows dequantises n rows from first on, counted through all experts, to float32.
func (w *Quantised) readRows(buf []byte, first, n int) []byte {
	st, _ := w.storage()
	buf = slices.Grow(buf[:0], 4*n*st.k)[:4*n*st.k]
	row, out := make([]float32, st.k), buf
	for n > 0 {
		expert, at := first/st.n, first%st.n
		rows := min(n, st.n-at, max(1, chunkBytes/st.k))
		m := w.window(st, expert, at, rows)
		for i := range rows {
			m.Row(row, i)
			for k, v := range row {
				binary.LittleEndian.PutUint32(out[4*k:], math.Float32bits(v))
			}
			out = out[4*st.k:]
		}
		first, n = first+rows, n-rows
	}
	return buf
}

// Info returns a header entry for the weight's values, for packages that use only names, types and shapes. Begin is 0, and End is
// the number of bytes of the values.
func (w *Weight) Info() weights.Info {
	return weights.Info{Name: w.Name, DType: w.DType, Shape: w.Shape, End: int64(w.Rows) * int64(w.RowBytes())}
}

// RowBytes returns the length of one row of values in bytes.
func (w *Weight) RowBytes() int { return w.Cols * w.DType.Bits() / 8 }

// ReadRows returns the n rows from first on, as little-endian elements of DType. If the weight is not quantised, the result is
// the mapped file itself: it is read-only and must not be passed as buf later. Otherwise the result is buf, or new memory if buf
// is too small; buf may be nil. For packed codes, many rows at a time are faster than one. ReadRows does not check scales, zero
// points and groups: see [Quantised.Check].
func (w *Weight) ReadRows(buf []byte, first, n int) []byte {
	size := w.RowBytes()
	if w.Quantised != nil {
		return w.Quantised.readRows(buf, first, n)
	}
	return weights.Need(w.Parts[0].Data[first*size : (first+n)*size : (first+n)*size])
}

// StoreRows converts values, whole rows from first on in the form of ReadRows, into bytes of the parts. It calls store with b,
// the bytes of Parts[part] from byte at on. first is a multiple of Unit. Rows stored in order give calls in order for every part.
// StoreRows stops at store's first error. For a quantised weight it returns an error; use [Quantised.Encode] instead.
func (w *Weight) StoreRows(first int, values []byte, store func(part int, at int64, b []byte) error) error {
	if w.Quantised != nil {
		return fmt.Errorf("weight %q is quantised: its values are stored as codes", w.Name)
	}
	if len(values) == 0 {
		return nil
	}
	return store(0, int64(first)*int64(w.RowBytes()), values)
}
