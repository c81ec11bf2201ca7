package quant

import (
	"bytes"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Operand returns the type of the elements that the GPU's tensor cores read. Kernels multiply FP8 codes as stored, and INT8
// codes too if each has a byte, and apply scales to the products. Kernels dequantise all other codes to BF16.
func (w *Quantised) Operand() weights.DType {
	switch d := w.Tensors[0].DType; d {
	case weights.F8E4M3, weights.F8E5M2, weights.I8:
		return d
	case weights.BF16, weights.F16, weights.F32:
		if w.Plain() {
			return d
		}
	}
	return weights.BF16
}

// Operand returns n rows from first on as the tensor cores read them: elements of type d, which [Quantised.Operand] gives.
// Elements of BF16 are the rounded products of codes and BF16 scales. They do not include the global scale, which kernels apply
// to the results. With a group index, kernels order the inputs by group; see [Matrix.InputsByGroup].
func (m *Matrix) Operand(d weights.DType, first, n int) []byte {
	f, _ := d.Format()
	data := make([]byte, n*m.K*f.Bits/8)
	m.PutOperand(data, d, first, n)
	return data
}

// PutOperand writes the result of Operand to data.
func (m *Matrix) PutOperand(data []byte, d weights.DType, first, n int) {
	order := m.InputsByGroup()
	f, _ := d.Format()
	units := *m
	if units.Global = 1; d == weights.BF16 {
		units.Scales = make([]float32, len(m.Scales))
		for i, s := range m.Scales {
			units.Scales[i] = f.Value(f.FromValue(s))
		}
	}
	row := make([]float32, m.K)
	for i := range n {
		to := data[i*len(data)/max(n, 1):]
		codes := m.Codes[(first+i)*m.K : (first+i+1)*m.K]
		switch d {
		case weights.BF16:
			if units.Row(row, first+i); order != nil {
				row = permuted(row, order)
			}
			f.Encode(to[:2*m.K], row)
		case weights.I8:
			for k, c := range codes {
				to[k] = c ^ 0x80
			}
		default:
			copy(to, codes)
		}
	}
}

// OperandRows returns n rows from first on, counted through all experts, as the tensor cores read them: see
// [Matrix.Operand]. Scales, zero points and groups are not checked. [Quantised.CanRead] must return nil.
func (w *Quantised) OperandRows(first, n int) (data []byte, err error) {
	st, err := w.storage()
	if err != nil {
		return nil, err
	}
	d := w.Operand()
	err = weights.Guard(w.fileNames(), func() error {
		for n > 0 {
			expert, at := first/st.n, first%st.n
			rows := min(n, st.n-at, max(1, chunkBytes/st.k))
			data = append(data, w.window(st, expert, at, rows).Operand(d, 0, rows)...)
			first, n = first+rows, n-rows
		}
		return nil
	})
	return data, err
}

// Dequantised reports whether kernels read four-bit codes from memory and compute BF16 values from them.
func (w *Quantised) Dequantised() bool {
	st, err := w.storage()
	return err == nil && len(st.book.Values) == 16 && st.k%2 == 0 && w.Operand() == weights.BF16
}

// Packed returns the four-bit codes of n rows from first on, two in a byte with the first in the lower half. K is even.
func (m *Matrix) Packed(first, n int) []byte {
	codes := m.Codes[first*m.K : (first+n)*m.K]
	data := make([]byte, len(codes)/2)
	for i := range data {
		data[i] = codes[2*i] | codes[2*i+1]<<4
	}
	return data
}

// PackedRows returns the codes of n rows from first on, counted through all experts, two in a byte with the first in the
// lower half. It returns nil if the codes do not have four bits or kernels do not dequantise them.
// [Quantised.CanRead] must return nil.
func (w *Quantised) PackedRows(first, n int) (data []byte, err error) {
	st, err := w.storage()
	if err != nil || len(st.book.Values) != 16 || st.k%2 != 0 {
		return nil, err
	}
	err = weights.Guard(w.fileNames(), func() error {
		for n > 0 {
			expert, at := first/st.n, first%st.n
			rows := min(n, st.n-at, max(1, chunkBytes/st.k))
			data = append(data, w.window(st, expert, at, rows).Packed(0, rows)...)
			first, n = first+rows, n-rows
		}
		return nil
	})
	return data, err
}

// SameBytes reports whether two weights have the same format and the same bytes in all parts.
func (w *Quantised) SameBytes(other *Quantised) bool {
	return w.Format == other.Format && slices.EqualFunc(w.Tensors, other.Tensors, func(a, b Stored) bool {
		return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && bytes.Equal(weights.Need(a.Data), weights.Need(b.Data))
	})
}

// InputsByGroup returns the inputs in the order in which kernels read them, group by group; nil if the matrix has this order.
func (m *Matrix) InputsByGroup() []int {
	if slices.IsSorted(m.Group) {
		return nil
	}
	order := make([]int, m.K)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(m.Group[a] - m.Group[b]) })
	return order
}

func permuted(row []float32, order []int) []float32 {
	out := make([]float32, len(row))
	for i, k := range order {
		out[i] = row[k]
	}
	return out
}
