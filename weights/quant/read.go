package quant

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Read returns the matrix of an expert; expert is 0 for a weight that has no experts. It reads codes and everything that
// belongs to them, wherever the tensors lie. The error names the file, the tensor and the byte of a scale that is not a
// positive number, of a zero point or group out of range, and of a shape that differs. Callers that may meet a failing
// disk wrap it in [weights.Guard].
func (w *Quantised) Read(expert int) (*Matrix, error) {
	st, err := w.storage()
	if err != nil {
		return nil, err
	}
	if expert < 0 || expert >= st.experts {
		return nil, fmt.Errorf("weight %q has no expert %d", w.Name, expert)
	}
	m := w.window(st, expert, 0, st.n)
	if err := w.checkValues(st, m, expert); err != nil {
		return nil, err
	}
	return m, nil
}

// window reads n rows from first on. It checks nothing; groups out of range belong to group 0.
func (w *Quantised) window(st *storage, expert, first, n int) *Matrix {
	m := &Matrix{Book: st.book, N: n, K: st.k, Block: st.block, Global: 1, Divide: st.divide, skip: first % st.block[0], Codes: make([]byte, n*st.k)}
	w.readCodes(st, m.Codes, expert, first, n)
	from, to := first/st.block[0], ceil(first+n, st.block[0])
	m.Scales = w.readScales(st, expert, from, to)
	if st.zeros.part >= 0 {
		m.Zeros = w.readZeros(st, expert, from, to)
	}
	if st.global.part >= 0 {
		at := expert
		if st.global.shared {
			at = 0
		}
		m.Global = w.Tensors[st.global.part].float(at)
	}
	if st.group >= 0 {
		m.Group = w.readGroups(st)
	}
	return m
}

// float reads element i of a tensor of scales.
func (t Stored) float(i int) float32 {
	switch t.DType {
	case weights.U8, weights.F8E8M0:
		return powerValues[t.Data[i]]
	}
	f, _ := t.DType.Format()
	return f.Value(f.Elem(t.Data, i))
}

// readCodes unpacks rows of codes.
func (w *Quantised) readCodes(st *storage, dst []byte, expert, first, n int) {
	data := w.Tensors[0].Data
	switch st.codes {
	case inBytes:
		copy(dst, data[(expert*st.n+first)*st.k:])
	case inOffset:
		for i, c := range data[(expert*st.n+first)*st.k:][:n*st.k] {
			dst[i] = c ^ 0x80
		}
	case inNibbles:
		size := st.k / 2
		for i, c := range data[(expert*st.n+first)*size:][:n*size] {
			dst[2*i], dst[2*i+1] = c&15, c>>4
		}
	case alongRow:
		size := 4 * ceil(st.k, st.perWord())
		for i := range n {
			unpackRow(dst[i*st.k:(i+1)*st.k], data[(expert*st.n+first+i)*size:][:size], st.bits)
		}
	}
}

// unpackRow unpacks words that hold 32 / bits codes each.
func unpackRow(dst, data []byte, bits int) {
	per := 32 / bits
	mask := uint32(1)<<bits - 1
	for len(dst) > 0 {
		word := binary.LittleEndian.Uint32(data)
		for i := range min(per, len(dst)) {
			dst[i] = byte(word >> (bits * i) & mask)
		}
		dst, data = dst[min(per, len(dst)):], data[4:]
	}
}

// readScales reads rows of scales.
func (w *Quantised) readScales(st *storage, expert, from, to int) []float32 {
	t := w.Tensors[st.scales.part]
	at := (expert*st.scaleRows() + from) * st.columns
	if st.scales.shared {
		at = 0
	}
	scales := make([]float32, (to-from)*st.columns)
	for i := range scales {
		scales[i] = t.float(at + i)
	}
	return scales
}

// readZeros reads the zero points in the places of rows of scales.
func (w *Quantised) readZeros(st *storage, expert, from, to int) []uint8 {
	data, half := w.Tensors[st.zeros.part].Data, byte(1)<<(st.bits-1)
	zeros := make([]uint8, (to-from)*st.columns)
	switch st.zeros.packing {
	case inOffset:
		for i, z := range data[(expert*st.scaleRows()+from)*st.columns:][:len(zeros)] {
			zeros[i] = z + half
		}
	case alongColumn:
		rows, mask := ceil(st.scaleRows(), st.perWord()), uint32(1)<<st.bits-1
		for i := range zeros {
			row, g := from+i/st.columns, i%st.columns
			word := binary.LittleEndian.Uint32(data[4*((expert*rows+row/st.perWord())*st.columns+g):])
			zeros[i] = byte(word >> (st.bits * (row % st.perWord())) & mask)
		}
	}
	return zeros
}

// readGroups reads the group index. It returns nil where compressed-tensors says, by −1 everywhere, that there is none.
func (w *Quantised) readGroups(st *storage) []int32 {
	t := w.Tensors[st.group]
	groups, none := make([]int32, st.k), true
	for k := range groups {
		g := t.integer(k)
		if none = none && g == -1; g >= 0 && g < int64(st.columns) {
			groups[k] = int32(g)
		}
	}
	if none && w.layout == packedLayout {
		return nil
	}
	return groups
}

// integer reads element i of a tensor of integers.
func (t Stored) integer(i int) int64 {
	if t.DType == weights.I64 {
		return int64(binary.LittleEndian.Uint64(t.Data[8*i:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(t.Data[4*i:])))
}

// fail makes an error about element i of a part.
func (w *Quantised) fail(part, i int, format string, args ...any) error {
	t := w.Tensors[part]
	return &weights.FormatError{File: t.File, Tensor: t.Name, Offset: t.start + int64(i*t.DType.Bits()/8), Msg: fmt.Sprintf(format, args...)}
}

// Check reads and checks everything but the codes: scales, zero points, group index and shape. What passes can be read.
func (w *Quantised) Check() error {
	st, err := w.storage()
	for expert := 0; err == nil && expert < st.experts; expert++ {
		err = w.checkValues(st, nil, expert)
	}
	return err
}

// checkValues checks the stored values of an expert but its codes. m holds them if they are read already.
func (w *Quantised) checkValues(st *storage, m *Matrix, expert int) error {
	if m == nil {
		m = &Matrix{Scales: w.readScales(st, expert, 0, st.scaleRows()), Global: 1}
		if st.zeros.part >= 0 {
			m.Zeros = w.readZeros(st, expert, 0, st.scaleRows())
		}
		if st.global.part >= 0 {
			m.Global = w.Tensors[st.global.part].float(st.expert(st.global, expert, 1))
		}
	}
	underflow := w.Format.Codes == "nvfp4"
	for i, s := range m.Scales {
		if !(s > 0) && !(underflow && s == 0 && !math.Signbit(float64(s))) || math.IsInf(float64(s), 0) {
			return w.fail(st.scales.part, st.scaleAt(expert, i), "holds the scale %v, which is not a positive number", s)
		}
	}
	if g := m.Global; !(g > 0) || math.IsInf(float64(g), 0) {
		return w.fail(st.global.part, st.expert(st.global, expert, 1), "holds the global scale %v, which is not a positive number", g)
	}
	if err := w.checkZeros(st, m.Zeros, expert); err != nil {
		return err
	}
	if err := w.checkGroups(st); err != nil {
		return err
	}
	return w.checkShape(st)
}

// expert is the place of an expert's first element in a tensor of size elements for each.
func (st *storage) expert(f field, expert, size int) int {
	if f.shared {
		return 0
	}
	return expert * size
}

// scaleAt is the element of the tensor of scales that holds scale i of an expert.
func (st *storage) scaleAt(expert, i int) int {
	return st.expert(st.scales, expert, st.scaleRows()*st.columns) + i
}

func (w *Quantised) checkZeros(st *storage, zeros []uint8, expert int) error {
	for i, z := range zeros {
		if int(z) >= len(st.book.Values) {
			return w.fail(st.zeros.part, expert*len(zeros)+i, "holds the zero point %d, which is out of the range of codes of %d bits", int8(z-1<<(st.bits-1)), st.bits)
		}
	}
	return nil
}

func (w *Quantised) checkGroups(st *storage) error {
	if st.group < 0 || w.readGroups(st) == nil {
		return nil
	}
	t := w.Tensors[st.group]
	for k := range st.k {
		if g := t.integer(k); g < 0 || g >= int64(st.columns) {
			return w.fail(st.group, k, "puts input %d into group %d, and there are groups 0 to %d", k, g, st.columns-1)
		}
	}
	return nil
}

func (w *Quantised) checkShape(st *storage) error {
	if st.shape < 0 {
		return nil
	}
	t := w.Tensors[st.shape]
	for i, d := range w.Shape {
		if have := t.integer(i); have != int64(d) {
			return w.fail(st.shape, i, "says that dimension %d is %d, and the codes %q hold %d", i, have, w.Tensors[0].Name, d)
		}
	}
	return nil
}
