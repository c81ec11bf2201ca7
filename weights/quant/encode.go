package quant

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lowtoggle/lowtoggle/weights"
)

// chunkBytes is about how many bytes of a tensor Encode makes at a time.
const chunkBytes = 1 << 18

// Encode turns the matrix of an expert into bytes of the weight's tensors, in exactly its layout. store is called with b, the
// bytes from byte at on of Tensors[part]; b is used again after the call. Calls are in order within a part, and cover all
// parts but those of the roles ActivationScale and Other. A matrix as [Quantised.Read] gave it makes the bytes that were
// read. Scales must be values that their type holds exactly (see [Book.RoundScale]), and those that all experts share must
// be the same for each. Encode stops at store's first error.
//
// The tensors need no data: a weight that was described from names, types and shapes alone can be encoded.
func (w *Quantised) Encode(m *Matrix, expert int, store func(part int, at int64, b []byte) error) error {
	st, err := w.storage()
	if err == nil {
		err = m.check(st)
	}
	if err != nil {
		return fmt.Errorf("weight %q: %w", w.Name, err)
	}
	if expert < 0 || expert >= st.experts {
		return fmt.Errorf("weight %q has no expert %d", w.Name, expert)
	}
	e := &encoder{w, st, m, expert, store}
	for _, part := range []func() error{e.codes, e.scales, e.zeros, e.groups, e.global, e.shape} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// encoder is the state of one call of Encode.
type encoder struct {
	w      *Quantised
	st     *storage
	m      *Matrix
	expert int
	store  func(part int, at int64, b []byte) error
}

// codes packs the codes, some rows at a time.
func (e *encoder) codes() error {
	st, size := e.st, e.st.rowBytes()
	rows := max(1, chunkBytes/size)
	buf := make([]byte, min(rows, st.n)*size)
	for first := 0; first < st.n; first += rows {
		n := min(rows, st.n-first)
		at := (e.expert*st.n + first) * size
		b := buf[:n*size]
		e.packRows(b, at, e.m.Codes[first*st.k:(first+n)*st.k])
		if err := e.store(0, int64(at), b); err != nil {
			return err
		}
	}
	return nil
}

// rowBytes is the length of a row of stored codes, where rows of outputs lie one after the other.
func (st *storage) rowBytes() int {
	switch st.codes {
	case inNibbles:
		return st.k / 2
	case alongRow:
		return 4 * ceil(st.k, st.perWord())
	}
	return st.k
}

// packRows packs rows of codes. Bits that hold no code are those of the source, from byte at on.
func (e *encoder) packRows(b []byte, at int, codes []byte) {
	st := e.st
	switch st.codes {
	case inBytes:
		copy(b, codes)
	case inOffset:
		for i, c := range codes {
			b[i] = c ^ 0x80
		}
	case inNibbles:
		for i := range b {
			b[i] = codes[2*i] | codes[2*i+1]<<4
		}
	case alongRow:
		size := st.rowBytes()
		for i := range len(b) / size {
			row := codes[i*st.k : (i+1)*st.k]
			packRow(b[i*size:(i+1)*size], row, st.bits)
			if used := len(row) % st.perWord(); used != 0 {
				keepBits(b[(i+1)*size-4:], e.w.Tensors[0].Data, at+(i+1)*size-4, used*st.bits)
			}
		}
	}
}

// packRow packs 32 / bits codes into each word.
func packRow(dst, codes []byte, bits int) {
	per := 32 / bits
	for i := range len(dst) / 4 {
		word := uint32(0)
		for j, c := range codes[i*per : min((i+1)*per, len(codes))] {
			word |= uint32(c) << (bits * j)
		}
		binary.LittleEndian.PutUint32(dst[4*i:], word)
	}
}

// keepBits takes the bits of a word above the used ones from the source's word at a byte, if the source has data.
func keepBits(word, source []byte, at, used int) {
	if len(source) > 0 {
		kept := binary.LittleEndian.Uint32(source[at:]) &^ (1<<used - 1)
		binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)|kept)
	}
}

// scales stores the scales in their type.
func (e *encoder) scales() error {
	return e.floats(e.st.scales, e.m.Scales)
}

func (e *encoder) global() error {
	if e.st.global.part < 0 {
		return nil
	}
	return e.floats(e.st.global, []float32{e.m.Global})
}

// floats stores an expert's values of one tensor.
func (e *encoder) floats(f field, values []float32) error {
	t := e.w.Tensors[f.part]
	size := t.DType.Bits() / 8
	b := make([]byte, len(values)*size)
	for i, v := range values {
		if !t.putFloat(b, i, v) {
			return fmt.Errorf("weight %q: the scale %v is not a value of type %s", e.w.Name, v, t.DType)
		}
	}
	if f.shared && e.expert > 0 {
		return e.sameForAll(t, b)
	}
	return e.store(f.part, int64(e.st.expert(f, e.expert, len(b))), b)
}

// sameForAll returns an error if a value that all experts share is not that of the source.
func (e *encoder) sameForAll(t Stored, b []byte) error {
	if len(t.Data) > 0 && string(t.Data) != string(b) {
		return fmt.Errorf("weight %q: all experts share the %s in tensor %q, and that of expert %d differs", e.w.Name, t.Role, t.Name, e.expert)
	}
	return nil
}

// putFloat stores element i; it reports false for a value that the type does not hold exactly.
func (t Stored) putFloat(b []byte, i int, v float32) bool {
	switch t.DType {
	case weights.U8, weights.F8E8M0:
		frac, exp := math.Frexp(float64(v))
		if frac != 0.5 || exp < -126 || exp > 128 {
			return false
		}
		b[i] = byte(exp + 126)
		return true
	}
	f, _ := t.DType.Format()
	c := f.FromValue(v)
	f.SetElem(b, i, c)
	return math.Float32bits(f.Value(c)) == math.Float32bits(v)
}

// zeros stores the zero points.
func (e *encoder) zeros() error {
	st, m := e.st, e.m
	if m.Zeros == nil {
		return nil
	}
	t, half := e.w.Tensors[st.zeros.part], byte(1)<<(st.bits-1)
	for _, z := range m.Zeros {
		if int(z) >= len(st.book.Values) {
			return fmt.Errorf("weight %q: the zero point %d is out of the range of codes of %d bits", e.w.Name, z, st.bits)
		}
	}
	var b []byte
	switch st.zeros.packing {
	case inOffset:
		b = make([]byte, len(m.Zeros))
		for i, z := range m.Zeros {
			b[i] = z - half
		}
	case alongColumn:
		per, rows := st.perWord(), st.scaleRows()
		b = make([]byte, 4*ceil(rows, per)*st.columns)
		for i, z := range m.Zeros {
			row, g := i/st.columns, i%st.columns
			word := b[4*(row/per*st.columns+g):]
			binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)|uint32(z)<<(st.bits*(row%per)))
		}
		for g := range st.columns {
			if used := rows % per; used != 0 {
				at := 4 * (rows/per*st.columns + g)
				keepBits(b[at:], t.Data, e.expert*len(b)+at, used*st.bits)
			}
		}
	}
	return e.store(st.zeros.part, int64(e.expert*len(b)), b)
}

// groups stores the group index. Where the source says that there is none, it stays.
func (e *encoder) groups() error {
	if e.st.group < 0 || e.expert > 0 {
		return nil
	}
	t := e.w.Tensors[e.st.group]
	b := make([]byte, 0, t.Size())
	for k := range e.st.k {
		g := int64(-1)
		if e.m.Group != nil {
			g = int64(e.m.Group[k])
		}
		b = t.appendInteger(b, g)
	}
	return e.store(e.st.group, 0, b)
}

func (e *encoder) shape() error {
	if e.st.shape < 0 || e.expert > 0 {
		return nil
	}
	t := e.w.Tensors[e.st.shape]
	var b []byte
	for _, d := range e.w.Shape {
		b = t.appendInteger(b, int64(d))
	}
	return e.store(e.st.shape, 0, b)
}

func (t Stored) appendInteger(b []byte, v int64) []byte {
	if t.DType == weights.I64 {
		return binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return binary.LittleEndian.AppendUint32(b, uint32(v))
}
