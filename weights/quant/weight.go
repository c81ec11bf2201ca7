package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Weight is one matrix of numbers, however many tensors it is stored in. It is read-only, and its
// methods may be called from several goroutines, until its model is closed.
type Weight struct {
	// Name is the weight's name in plans, layouts and reports: the tensor's name if it has one part, and its name in an unquantised
	// checkpoint if it is quantised.
	Name string
	// DType is the type of its values; F32 where it is quantised.
	DType weights.DType
	// Shape is that of its values.
	Shape []int
	// Rows and Cols are Shape as a matrix in storage order, as [weights.Info.Matrix] gives it. Values
	// whose rows would not end on a whole byte are a single row.
	Rows, Cols int
	// Unit is how many rows StoreRows takes at a time: a multiple of it, or all that are left. 1 for a
	// plain weight.
	Unit int
	// Adapter is true for a weight of the adapter beside the model.
	Adapter bool
	// Parts are the tensors that it is stored in: of a quantised weight the codes, then the others.
	Parts []Part
	// Quantised says how the weight is stored as codes; nil where its values are stored.
	Quantised *Quantised
}

// Part is one tensor of a weight.
type Part struct {
	weights.Tensor
	// Shard is the place in [weights.Model.Files] of the file that holds the tensor.
	Shard int
}

// plain is the weight that a tensor is on its own.
func plain(t weights.Tensor, shard int) *Weight {
	w := &Weight{Name: t.Name, DType: t.DType, Shape: t.Shape, Unit: 1, Parts: []Part{{t, shard}}}
	if w.Rows, w.Cols = t.Matrix(); w.Cols*t.DType.Bits()%8 != 0 {
		w.Rows, w.Cols = 1, t.Len()
	}
	return w
}

// logical is a quantised weight that can be read.
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

// Info describes the weight as a tensor of its values, for packages that look at names, types and
// shapes only: its Begin is 0, and its End the number of bytes of its values.
func (w *Weight) Info() weights.Info {
	return weights.Info{Name: w.Name, DType: w.DType, Shape: w.Shape, End: int64(w.Rows) * int64(w.RowBytes())}
}

// RowBytes is the length of one row of values in bytes.
func (w *Weight) RowBytes() int { return w.Cols * w.DType.Bits() / 8 }

// ReadRows returns the n rows from first on, as little-endian elements of DType. Where the values lie
// in the file as they are, the result is the mapped file itself, which is read-only and must not be given as buf later. Otherwise
// it is buf, or new memory where buf is too small; buf may be nil. Many rows at a time are faster than one where codes must be
// unpacked. It does not check scales, zero points and groups: see [Quantised.Check].
func (w *Weight) ReadRows(buf []byte, first, n int) []byte {
	size := w.RowBytes()
	if w.Quantised != nil {
		return w.Quantised.readRows(buf, first, n)
	}
	return weights.Need(w.Parts[0].Data[first*size : (first+n)*size : (first+n)*size])
}

// StoreRows turns values, whole rows from first on as ReadRows gives them, into bytes of the parts:
// store is called with b, the bytes from byte at on of Parts[part]. first is a multiple of Unit. Rows
// stored in order make calls that are in order for every part. It stops at store's first error. A quantised weight is
// stored by [Quantised.Encode] instead.
func (w *Weight) StoreRows(first int, values []byte, store func(part int, at int64, b []byte) error) error {
	if w.Quantised != nil {
		return fmt.Errorf("weight %q is quantised: its values are stored as codes", w.Name)
	}
	if len(values) == 0 {
		return nil
	}
	return store(0, int64(first)*int64(w.RowBytes()), values)
}
