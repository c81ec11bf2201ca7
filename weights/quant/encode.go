package quant

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// chunkBytes is the approximate number of bytes of codes that Encode makes at a time. Chunks are larger if the tensor's rows are
// the matrix's columns, because each chunk then takes a few bytes of every row of the matrix.
const (
	chunkBytes       = 1 << 18
	columnChunkBytes = 1 << 19
	mostChunks       = 8 // chunks that are being packed or wait to be stored
)

// Encode writes the matrix of an expert as bytes of the weight's tensors, in the weight's layout. It calls store with b, the
// bytes of Tensors[part] from byte at on. b is read-only and is reused after the call. Encode packs on all processors and calls
// store on the caller's goroutine, in order within a part. The calls cover all parts except those of the roles ActivationScale
// and Other. An unchanged matrix of [Quantised.Read] gives the bytes that were read. The type of the scales must hold each scale
// exactly (see [Book.RoundScale]), and scales that all experts share must be equal for each expert. Encode stops at store's first
// error.
//
// The tensors need no data: a weight that was described from names, types and shapes alone can be encoded.
func (w *Quantised) Encode(m *Matrix, expert int, store func(part int, at int64, b []byte) error) error {
	st, err := w.storage()
	if err != nil {
		return err
	}
	if expert < 0 || expert >= st.experts {
		return fmt.Errorf("weight %q has no expert %d", w.Name, expert)
	}
	e := &encoder{w, st, m, expert, store}
	if err := e.check(); err != nil {
		return fmt.Errorf("weight %q: %w", w.Name, err)
	}
	for _, part := range []func() error{e.codes, e.scales, e.zeros, e.groups, e.global, e.shape} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// RowUnit returns the number of outputs that share scales, if their rows in the tensors share no bytes with other outputs. Such
// rows can be encoded alone; see [Quantised.EncodeRows]. It returns 0 for other layouts.
func (w *Quantised) RowUnit() int {
	st, err := w.storage()
	if err != nil || w.Make != nil || st.codes == alongColumn || st.codes == inAWQ || st.scales.shared || st.scales.transposed {
		return 0
	}
	return st.block[0]
}

// RowSizes returns the bytes of an output in the tensor of codes, and the bytes of a row of scales. It needs a RowUnit that is not 0.
func (w *Quantised) RowSizes() (codes, scales int) {
	st, _ := w.storage()
	return st.rowBytes(), st.columns * st.book.ScaleType.Bits() / 8
}

// EncodeRows encodes a matrix that Rows returned, with new codes and scales. first is its first row, a multiple of RowUnit.
// EncodeRows writes the bytes of the codes' tensor to codes, and the bytes of the scales' tensor to scales. A nil slice is not
// written.
func (w *Quantised) EncodeRows(m *Matrix, expert, first int, codes, scales []byte) error {
	st, err := w.storage()
	if err != nil {
		return err
	}
	e := &encoder{w: w, st: st, m: m, expert: expert}
	switch {
	case len(codes) == 0:
	case st.codes == inBytes && &codes[0] == &m.Codes[0]: // the codes are in place already
	case st.codes == inBytes:
		copy(codes, m.Codes)
	case !e.packRows(codes, (expert*st.n+first)*st.rowBytes(), m.Codes):
		return e.badCode()
	}
	if len(scales) == 0 {
		return nil
	}
	if bad := encodeFloats(scales, m.Scales, w.Tensors[st.scales.part].DType); bad >= 0 {
		return e.badScale(st.scales.part, m.Scales[bad])
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

// check returns an error for a matrix that the weight's tensors cannot hold.
func (e *encoder) check() error {
	m, st := e.m, e.st
	scales, codes := st.scaleRows()*st.columns, len(st.book.Values)
	switch {
	case m.N != st.n || m.K != st.k || len(m.Codes) != m.N*m.K:
		return fmt.Errorf("a matrix of %d × %d with %d codes does not fit a weight of %d × %d", m.N, m.K, len(m.Codes), st.n, st.k)
	case m.Block != st.block || len(m.Scales) != scales:
		return fmt.Errorf("%d scales for blocks of %v do not fit the weight's %d scales for blocks of %v", len(m.Scales), m.Block, scales, st.block)
	case (m.Zeros != nil) != (st.zeros.part >= 0) || m.Zeros != nil && len(m.Zeros) != len(m.Scales):
		return fmt.Errorf("%d zero points do not fit %d scales", len(m.Zeros), len(m.Scales))
	case m.Group != nil && st.group < 0:
		return errors.New("the weight has no group index: leave Group empty")
	case m.Group != nil && len(m.Group) != m.K:
		return fmt.Errorf("a group index of %d inputs does not fit a weight with %d inputs", len(m.Group), m.K)
	case m.Book.Codes != st.book.Codes || m.Book.ScaleType != st.book.ScaleType:
		return fmt.Errorf("codes %s with scales of type %s do not fit the weight's codes %s with scales of type %s", m.Book.Codes, m.Book.ScaleType, st.book.Codes, st.book.ScaleType)
	}
	for _, z := range m.Zeros {
		if int(z) >= codes || z < st.less {
			return fmt.Errorf("the zero point %d is outside %d to %d", z, st.less, codes-1)
		}
	}
	for _, g := range m.Group {
		if g < 0 || int(g) >= st.columns {
			return fmt.Errorf("there is no group %d: the weight has %d, counted from 0", g, st.columns)
		}
	}
	return nil
}

// codes packs the codes, some rows of the tensor at a time.
func (e *encoder) codes() error {
	st, size := e.st, e.st.rowBytes()
	rows, step := st.n, max(1, chunkBytes/size)
	switch st.codes {
	case alongColumn:
		rows, step = st.codeRows(), ceil(columnChunkBytes, size*tileRows)*tileRows
	case inAWQ:
		rows, step = st.k, ceil(columnChunkBytes, size*awqInputs)*awqInputs
	}
	if st.codes == inBytes { // stored unchanged
		return e.store(0, int64(e.expert*rows*size), e.m.Codes)
	}
	chunks := ceil(rows, step)
	buffers := make([][]byte, min(parallel.Workers(0)+1, chunks, mostChunks))
	of := func(i int) []byte { return buffers[i%len(buffers)][:min(step, rows-i*step)*size] }
	var started []chan error // one for each chunk that is being packed, in order
	start := func(i int) {
		done := make(chan error, 1)
		started = append(started, done)
		go func() {
			done <- weights.Guard(e.w.Tensors[0].File, func() error {
				return e.pack(of(i), i*step, len(of(i))/size)
			})
		}()
	}
	for i := range buffers {
		buffers[i] = make([]byte, min(rows, step)*size)
		start(i)
	}
	var first error
	for i := 0; len(started) > 0; i++ { // continues after an error until no chunk is being packed
		err := <-started[0]
		if started = started[1:]; first != nil {
			continue
		}
		if first = err; err == nil {
			first = e.store(0, int64((e.expert*rows+i*step)*size), of(i))
		}
		if first == nil && i+len(buffers) < chunks {
			start(i + len(buffers))
		}
	}
	return first
}

// pack packs n rows of the tensor of codes from first on.
func (e *encoder) pack(b []byte, first, n int) error {
	st, ok := e.st, false
	switch st.codes {
	case alongColumn:
		ok = packColumns(b, e.m.Codes, st.n, st.k, st.bits, first, n)
	case inAWQ:
		ok = packAWQ(b, e.m.Codes, st.n, st.k, first, n)
	default:
		ok = e.packRows(b, (e.expert*st.n+first)*st.rowBytes(), e.m.Codes[first*st.k:(first+n)*st.k])
	}
	if !ok {
		return e.badCode()
	}
	return nil
}

func (e *encoder) badCode() error {
	return fmt.Errorf("weight %q: code %[3]d does not exist in %[2]s", e.w.Name, e.st.book.Codes, slices.Max(e.m.Codes))
}

// packRows packs rows of codes, and reports whether all codes fit into their bits. Bits without a code are copied from the
// source, from byte at on.
func (e *encoder) packRows(b []byte, at int, codes []byte) bool {
	st, size := e.st, e.st.rowBytes()
	switch used := st.k * st.bits % 32; {
	case st.codes == inOffset:
		flipHighBits(b, codes)
	case used == 0:
		return packBits(b, codes, st.bits, 0)
	default:
		source, ok := weights.Need(e.w.Tensors[0].Data), true
		for i := range len(b) / size {
			row, end := b[i*size:(i+1)*size], at+(i+1)*size-4
			ok = packBits(row, codes[i*st.k:(i+1)*st.k], st.bits, 0) && ok
			keepRest(row[size-4:], source[min(end, len(source)):], used)
		}
		return ok
	}
	return true
}

// scales stores the scales in their type.
func (e *encoder) scales() error {
	st, values := e.st, e.m.Scales
	if st.scales.transposed {
		values = make([]float32, len(values))
		for g := range st.columns {
			for i := range st.n {
				values[g*st.n+i] = e.m.Scales[i*st.columns+g]
			}
		}
	}
	return e.floats(st.scales, values)
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
	b := make([]byte, len(values)*t.DType.Bits()/8)
	if bad := encodeFloats(b, values, t.DType); bad >= 0 {
		return e.badScale(f.part, values[bad])
	}
	if f.shared && e.expert > 0 {
		if len(t.Data) > 0 && string(weights.Need(t.Data)) != string(b) {
			return fmt.Errorf("weight %q: all experts share the %s in tensor %q, but the value of expert %d differs", e.w.Name, t.Role, t.Name, e.expert)
		}
		return nil
	}
	return e.store(f.part, int64(e.st.at(f, e.expert, len(b))), b)
}

func (e *encoder) badScale(part int, v float32) error {
	return fmt.Errorf("weight %q: the scale %v is not a value of type %s", e.w.Name, v, e.w.Tensors[part].DType)
}

// zeros stores the zero points.
func (e *encoder) zeros() error {
	st, m := e.st, e.m
	if m.Zeros == nil {
		return nil
	}
	t := e.w.Tensors[st.zeros.part]
	b := make([]byte, t.Len()*t.DType.Bits()/8/st.experts)
	switch {
	case st.zeros.transposed:
		e.packZeros(b)
	case st.zeros.packing == inOffset:
		for i, z := range m.Zeros {
			b[i] = z - st.book.Zero
		}
	default:
		for row := range st.scaleRows() {
			at, code, stride := st.zeroAt(0, row, 0)
			for g, z := range m.Zeros[row*st.columns:][:st.columns] {
				setBitsAt(b[at+4*g:], code, stride, st.bits, z)
			}
		}
	}
	if used := st.scaleRows() * st.bits % 32; st.zeros.packing == alongColumn && used != 0 {
		for at := len(b) - 4*st.columns; at < len(b); at += 4 {
			keepRest(b[at:], weights.Need(t.Data)[min(e.expert*len(b)+at, len(t.Data)):], used)
		}
	}
	return e.store(st.zeros.part, int64(e.expert*len(b)), b)
}

// packZeros packs the rows of GPTQ's and AWQ's zero points.
func (e *encoder) packZeros(b []byte) {
	st := e.st
	if st.zeros.packing == inAWQ {
		packAWQ(b, e.m.Zeros, st.n, st.columns, 0, st.columns)
		return
	}
	line, size := make([]byte, st.n), st.n*st.bits/8
	for g := range st.columns {
		for i := range line {
			line[i] = e.m.Zeros[i*st.columns+g] - st.less
		}
		packBits(b[g*size:(g+1)*size], line, st.bits, 0)
	}
}

// groups stores the group index. There are two ways to store an index whose inputs lie in the order of their groups.
func (e *encoder) groups() error {
	st := e.st
	if st.group < 0 || e.expert > 0 {
		return nil
	}
	t := e.w.Tensors[st.group]
	if e.m.Group == nil && len(t.Data) > 0 && e.w.readGroups(st) == nil {
		return e.store(st.group, 0, slices.Clone(weights.Need(t.Data)))
	}
	var b []byte
	for k := range st.k {
		g := k / st.block[1]
		if e.m.Group != nil {
			g = int(e.m.Group[k])
		}
		b = t.appendInteger(b, int64(g))
	}
	return e.store(st.group, 0, b)
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
		return little.AppendUint64(b, uint64(v))
	}
	return little.AppendUint32(b, uint32(v))
}
