package quant

import (
	"context"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Read returns the matrix of an expert; expert is 0 for a weight without experts. It reads codes, scales, zero points and
// groups on all processors, also from several shards. A scale that is not positive, a zero point or group out of range, and a
// stored shape that differs from Shape are errors. They name the file, the tensor and the byte. To survive a failing disk,
// call Read under [weights.Guard].
func (w *Quantised) Read(expert int) (*Matrix, error) {
	m := &Matrix{}
	if err := w.ReadInto(m, expert); err != nil {
		return nil, err
	}
	return m, nil
}

// ReadInto is [Quantised.Read] into the memory of m: an empty matrix, or an earlier result for any weight. Reusing a matrix
// saves about half of the time, because allocating memory takes about as long as reading.
func (w *Quantised) ReadInto(m *Matrix, expert int) error {
	st, err := w.readable()
	if err != nil {
		return err
	}
	if expert < 0 || expert >= st.experts {
		return fmt.Errorf("weight %q has no expert %d", w.Name, expert)
	}
	if w.Make != nil {
		*m = *w.window(st, expert, 0, st.n)
		return nil
	}
	*m = Matrix{Book: st.book, N: st.n, K: st.k, Block: st.block, Codes: sized(m.Codes, st.n*st.k), Scales: m.Scales, Zeros: m.Zeros}
	w.readScales(st, m, expert, 0, st.scaleRows())
	if err := w.checkValues(st, m, expert); err != nil {
		return err
	}
	const unit = 128 // outputs of a goroutine; neighbouring outputs share cache lines
	rows := ceil(chunkBytes, unit*st.k) * unit
	return parallel.Run(context.Background(), ceil(st.n, rows), 0, func(_ context.Context, i int) error {
		first, n := i*rows, min(rows, st.n-i*rows)
		return weights.Guard(w.Tensors[0].File, func() error {
			w.readCodes(st, m.Codes[first*st.k:(first+n)*st.k], expert, first, n)
			return nil
		})
	})
}

// sized returns a slice of n elements, in the memory of old if old is large enough.
func sized[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n)
	}
	return old[:n]
}

// readable returns the weight's storage. It is an error if the tensors have no data and the weight has no Make.
func (w *Quantised) readable() (*storage, error) {
	st, err := w.storage()
	if err != nil || w.Make != nil {
		return st, err
	}
	for _, t := range w.Tensors {
		if int64(len(t.Data)) != t.Size() {
			return nil, weights.TensorErrorf(t.File, t.Name, "was described without its data: describe an open model")
		}
	}
	return st, nil
}

// Check reads and checks everything but the codes: scales, zero points, group index and shape. A weight that passes can be
// read.
func (w *Quantised) Check() error {
	st, err := w.readable()
	for expert := 0; err == nil && expert < st.experts && w.Make == nil; expert++ {
		m := &Matrix{}
		w.readScales(st, m, expert, 0, st.scaleRows())
		err = w.checkValues(st, m, expert)
	}
	return err
}

// Rows returns n rows of an expert's matrix from first on, for a weight that can be read (see [Quantised.CanRead]). Codes of
// other rows are not read. If codes are stored unpacked, Codes is the mapped file itself: read-only, and to be read under
// [weights.Guard]. Rows checks no values; see [Quantised.Check].
func (w *Quantised) Rows(expert, first, n int) *Matrix {
	st, err := w.readable()
	if err != nil {
		panic(err)
	}
	return w.window(st, expert, first, n)
}

// window is Rows for a known storage. It checks nothing; inputs whose group is out of range belong to group 0.
func (w *Quantised) window(st *storage, expert, first, n int) *Matrix {
	if w.Make != nil {
		from, to := first/st.block[0]*st.block[0], min(ceil(first+n, st.block[0])*st.block[0], st.n)
		m := *w.Make(expert, from, to-from)
		m.N, m.skip, m.Codes = n, first-from, m.Codes[(first-from)*st.k:(first-from+n)*st.k]
		return &m
	}
	m := &Matrix{Book: st.book, N: n, K: st.k, Block: st.block, skip: first % st.block[0]}
	if st.codes == inBytes {
		m.Codes = weights.Need(w.Tensors[0].Data[(expert*st.n+first)*st.k:][: n*st.k : n*st.k])
	} else {
		m.Codes = make([]byte, n*st.k)
		w.readCodes(st, m.Codes, expert, first, n)
	}
	w.readScales(st, m, expert, first/st.block[0], ceil(first+n, st.block[0]))
	return m
}

// readCodes unpacks rows of codes.
func (w *Quantised) readCodes(st *storage, dst []byte, expert, first, n int) {
	data, size := w.Tensors[0].Data, st.rowBytes()
	switch st.codes {
	case alongColumn:
		unpackColumns(dst, weights.Need(data), st.n, first, n, st.k, st.bits)
		return
	case inAWQ:
		unpackAWQ(dst, weights.Need(data), st.n, first, n, st.k)
		return
	}
	data = weights.Need(data[(expert*st.n+first)*size:][:n*size])
	switch {
	case st.codes == inBytes:
		copy(dst, data)
	case st.codes == inOffset:
		flipHighBits(dst, data)
	case st.k*st.bits%32 == 0:
		unpackBits(dst, data, st.bits)
	default:
		for i := range n {
			unpackBits(dst[i*st.k:(i+1)*st.k], data[i*size:(i+1)*size], st.bits)
		}
	}
}

// readScales reads rows [from, to) of scales into m, with their zero points, groups and global scale.
func (w *Quantised) readScales(st *storage, m *Matrix, expert, from, to int) {
	t := w.Tensors[st.scales.part]
	size, rows := t.DType.Bits()/8, to-from
	weights.Need(t.Data)
	m.Scales = sized(m.Scales, rows*st.columns)
	if st.scales.transposed {
		line := make([]float32, rows)
		for g := range st.columns {
			decodeFloats(line, t.Data[(g*st.n+from)*size:], t.DType)
			for i, s := range line {
				m.Scales[i*st.columns+g] = s
			}
		}
	} else {
		at := st.at(st.scales, expert, st.scaleRows()*st.columns) + from*st.columns
		decodeFloats(m.Scales, t.Data[at*size:], t.DType)
	}
	if m.Global, m.Divide = 1, st.divide; st.global.part >= 0 {
		t, global := w.Tensors[st.global.part], make([]float32, 1)
		decodeFloats(global, weights.Need(t.Data)[st.at(st.global, expert, 1)*t.DType.Bits()/8:], t.DType)
		m.Global = global[0]
	}
	if st.zeros.part < 0 {
		m.Zeros = nil
	} else {
		m.Zeros = sized(m.Zeros, rows*st.columns)
		w.readZeros(st, m.Zeros, expert, from, to)
	}
	if st.group >= 0 {
		m.Group = w.readGroups(st)
	}
}

// at returns an expert's first element in a tensor with size elements per expert.
func (st *storage) at(f field, expert, size int) int {
	if f.shared {
		return 0
	}
	return expert * size
}

// readZeros reads the zero points of rows of scales.
func (w *Quantised) readZeros(st *storage, zeros []uint8, expert, from, to int) {
	data, mask := weights.Need(w.Tensors[st.zeros.part].Data), byte(len(st.book.Values)-1)
	switch {
	case st.zeros.packing == inAWQ:
		unpackAWQ(zeros, data, st.n, from, to-from, st.columns)
		return
	case st.zeros.transposed:
		first := from &^ 31 // 32 codes fill whole words
		line := make([]byte, ceil(to-first, 8)*8)
		for g := range st.columns {
			unpackBits(line, data[(g*st.n+first)*st.bits/8:], st.bits)
			for i, z := range line[from-first : to-first] {
				zeros[i*st.columns+g] = (z + st.less) & mask
			}
		}
		return
	}
	for row := from; row < to; row++ {
		own := zeros[(row-from)*st.columns:][:st.columns]
		at, i, stride := st.zeroAt(expert, row, 0)
		if st.zeros.packing == inOffset {
			for g, z := range data[at : at+st.columns] {
				own[g] = z + st.book.Zero
			}
			continue
		}
		for g := range own {
			own[g] = bitsAt(data[at+4*g:], i, stride, st.bits)
		}
	}
}

// zeroAt returns the place of a zero point: code i of a stream that begins at byte at, in words that are stride words apart.
func (st *storage) zeroAt(expert, row, g int) (at, i, stride int) {
	switch st.zeros.packing {
	case inOffset:
		return (expert*st.scaleRows()+row)*st.columns + g, 0, 0
	case alongColumn:
		words := ceil(st.scaleRows()*st.bits, 32)
		return 4 * (expert*words*st.columns + g), row, st.columns
	case inAWQ:
		return 4 * (g*st.n + row) / 8 &^ 3, 0, 1
	}
	return 4 * g * (st.n * st.bits / 32), row, 1
}

// readGroups reads the group index. It returns nil if inputs lie in the order of their groups. compressed-tensors may store
// this order as −1.
func (w *Quantised) readGroups(st *storage) []int32 {
	weights.Need(w.Tensors[st.group].Data)
	groups, ordered, none := make([]int32, st.k), true, w.layout == packedLayout
	for k := range groups {
		g := w.Tensors[st.group].integer(k)
		ordered, none = ordered && g == int64(k/st.block[1]), none && g == -1
		if g >= 0 && g < int64(st.columns) {
			groups[k] = int32(g)
		}
	}
	if ordered || none {
		return nil
	}
	return groups
}

// integer returns element i of a tensor of I32 or I64.
func (t Stored) integer(i int) int64 {
	if t.DType == weights.I64 {
		return int64(little.Uint64(t.Data[8*i:]))
	}
	return int64(int32(little.Uint32(t.Data[4*i:])))
}

// fail returns an error about an element of a part, with its byte in the file.
func (w *Quantised) fail(part, at int, format string, args ...any) error {
	t := w.Tensors[part]
	return &weights.FormatError{File: t.File, Tensor: t.Name, Offset: t.start + int64(at), Msg: fmt.Sprintf(format, args...) + ": download the model again"}
}

// checkValues checks all values of an expert's matrix but the codes.
func (w *Quantised) checkValues(st *storage, m *Matrix, expert int) error {
	least := uint32(1)
	if w.Format.Codes == "nvfp4" {
		least = 0 // the bits 0 are allowed, because ModelOpt rounds its smallest scales to 0
	}
	if i := notPositive(m.Scales, least); i >= 0 {
		at := st.at(st.scales, expert, len(m.Scales)) + i
		if st.scales.transposed {
			at = i%st.columns*st.n + i/st.columns
		}
		return w.fail(st.scales.part, at*st.book.ScaleType.Bits()/8, "holds the scale %v, which is not a positive number", m.Scales[i])
	}
	if notPositive([]float32{m.Global}, 1) >= 0 {
		at := st.at(st.global, expert, 1) * w.Tensors[st.global.part].DType.Bits() / 8
		return w.fail(st.global.part, at, "holds the global scale %v, which is not a positive number", m.Global)
	}
	for _, check := range []func() error{
		func() error { return w.checkZeros(st, m.Zeros, expert) },
		func() error { return w.checkGroups(st, m.Group) },
		func() error { return w.checkShape(st) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// notPositive returns the index of the first scale that is infinite, NaN, negative, or has bits below least; −1 if there is none.
func notPositive(scales []float32, least uint32) int {
	for i, s := range scales {
		if math.Float32bits(s)-least > 0x7F7FFFFF-least {
			return i
		}
	}
	return -1
}

// checkZeros checks that zero points are codes. Signed zero points of 8 bits may be out of range for codes of fewer bits.
// GPTQ's first version stores the zero point minus 1. If all bits of the stored value are set, runtimes disagree on the zero
// point: some add 1 and get a number that is no code, some get 0, and some carry into the next zero point.
func (w *Quantised) checkZeros(st *storage, zeros []uint8, expert int) error {
	for i, z := range zeros {
		if int(z) < len(st.book.Values) && z >= st.less {
			continue
		}
		at, code, stride := st.zeroAt(expert, i/st.columns, i%st.columns)
		at += 4 * stride * (code * st.bits / 32)
		if int(z) >= len(st.book.Values) {
			return w.fail(st.zeros.part, at, "holds the zero point %d, but codes of %d bits are %d to %d", int8(z-st.book.Zero), st.bits, -int(st.book.Zero), int(st.book.Zero)-1)
		}
		return w.fail(st.zeros.part, at, "holds the zero point %d of output %d, but GPTQ adds 1, and %d is no code of %d bits",
			len(st.book.Values)-1, i/st.columns, len(st.book.Values), st.bits)
	}
	return nil
}

// checkGroups checks that every group exists. compressed-tensors gives every group equally many inputs.
func (w *Quantised) checkGroups(st *storage, groups []int32) error {
	if groups == nil {
		return nil
	}
	t, sizes := w.Tensors[st.group], make([]int, st.columns)
	size := t.DType.Bits() / 8
	for k := range groups {
		g := t.integer(k)
		if g < 0 || g >= int64(st.columns) {
			return w.fail(st.group, k*size, "puts input %d into group %d, but the groups are 0 to %d", k, g, st.columns-1)
		}
		if sizes[g]++; sizes[g] > st.block[1] && w.layout == packedLayout {
			return w.fail(st.group, k*size, "puts more than %d inputs into group %d", st.block[1], g)
		}
	}
	return nil
}

func (w *Quantised) checkShape(st *storage) error {
	if st.shape < 0 {
		return nil
	}
	t := w.Tensors[st.shape]
	weights.Need(t.Data)
	for i, d := range w.Shape {
		if have := t.integer(i); have != int64(d) {
			return w.fail(st.shape, i*t.DType.Bits()/8, "says that dimension %d is %d, but codes %q hold %d", i, have, w.Tensors[0].Name, d)
		}
	}
	return nil
}
