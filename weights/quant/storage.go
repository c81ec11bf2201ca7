package quant

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// storage describes how the tensors of a weight hold its matrices.
type storage struct {
	book          Book
	experts, n, k int
	codes         packing
	bits          int // of a code
	block         [2]int
	columns       int // number of scales in a row of scales

	scales field
	zeros  field
	group  int // part with the group index; −1: none
	shape  int // part with the shape; −1: none
	global field
	divide bool
	less   uint8 // 1 if zero points are stored minus 1, as in GPTQ's first version; else 0
}

// packing is the way in which a tensor packs codes or zero points.
type packing int

const (
	inBytes     packing = iota + 1 // one in a byte, as stored
	inOffset                       // one in a byte, as a signed integer
	alongRow                       // a stream of bits along a row, from the lowest bits of 32-bit words on
	alongColumn                    // a stream of bits along a column of 32-bit words
	inAWQ                          // eight of 4 bits in a word along a row, in AWQ's order
)

// field is a tensor of scales, zero points or a global scale.
type field struct {
	part       int // −1: none
	packing    packing
	transposed bool // one row for each group
	shared     bool // one value for all experts
}

func (st *storage) scaleRows() int { return ceil(st.n, st.block[0]) }

// rowBytes returns the bytes of a row of the tensor of codes. A row holds all codes of one output, or some codes of all outputs.
func (st *storage) rowBytes() int {
	switch st.codes {
	case alongRow:
		return 4 * ceil(st.k*st.bits, 32)
	case alongColumn:
		return 4 * st.n
	case inAWQ:
		return st.n / 2
	}
	return st.k
}

// CanRead returns nil if [Quantised.Read] supports the weight's storage, and otherwise an error with the reason.
func (w *Quantised) CanRead() error {
	_, err := w.storage()
	return err
}

// Experts returns the number of matrices: the product of all dimensions of Shape except the last two.
func (w *Quantised) Experts() int {
	n := 1
	for _, d := range w.Shape[:max(0, len(w.Shape)-2)] {
		n *= d
	}
	return n
}

// index returns the index of the first part of a role; −1 if there is none.
func (w *Quantised) index(r Role) int {
	return slices.IndexFunc(w.Tensors, func(t Stored) bool { return t.Role == r })
}

// addConfig is the advice if the tensors alone do not determine the format.
const addConfig = "put config.json with its quantization_config beside the weights"

// storage returns a description of how the weight is stored.
func (w *Quantised) storage() (*storage, error) {
	unread := errors.New("values of this layout cannot be read")
	_, n, k, ok := matrix(w.Shape)
	switch w.layout {
	case scaledLayout, packedLayout, blocksLayout, gptqLayout:
	default:
		ok = false
	}
	st := &storage{experts: w.Experts(), n: n, k: k, scales: field{part: w.index(Scales)}, zeros: field{part: w.index(ZeroPoints)},
		group: w.index(GroupIndex), shape: w.index(Shape), global: field{part: w.index(GlobalScale)}}
	err := unread
	switch {
	case ok && st.scales.part >= 0:
		err = w.layOut(st)
	case w.layout == packedLayout && w.Format.Codes == "":
		err = errors.New("no config gives the bits of a code: " + addConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("weight %q, %s: %w", w.Name, w.Format, err)
	}
	return st, nil
}

func (w *Quantised) layOut(st *storage) error {
	st.book = Book{Codes: w.Format.Codes, ScaleType: w.Tensors[st.scales.part].DType}
	if st.book.ScaleType == weights.U8 {
		st.book.ScaleType = weights.F8E8M0
	}
	for _, find := range []func(*storage) error{w.layOutCodes, w.layOutGPTQ, w.layOutScales} {
		if err := find(st); err != nil {
			return err
		}
	}
	return w.checkSizes(st)
}

// layOutCodes determines the packing of codes and zero points, and their values.
func (w *Quantised) layOutCodes(st *storage) error {
	codes := w.Tensors[0]
	switch kind := w.Format.Codes; {
	case kind == "fp8" && st.zeros.part < 0:
		st.codes, st.bits, st.book.Values = inBytes, 8, fp8Values[codes.DType]
	case (kind == "mxfp4" || kind == "nvfp4") && st.zeros.part < 0:
		st.codes, st.bits, st.book.Values = alongRow, 4, fp4Values
	case strings.HasPrefix(kind, "int"):
		st.bits, _ = strconv.Atoi(kind[len("int"):])
		if st.bits < 1 || st.bits > 8 {
			return fmt.Errorf("lowtoggle reads codes of 1 to 8 bits, and these have %d bits", st.bits)
		}
		st.book.Values, st.book.Zero = intValues[:1<<st.bits], 1<<(st.bits-1)
		if st.codes = alongRow; codes.DType == weights.I8 {
			st.codes = inOffset
		}
		if st.zeros.packing = alongColumn; st.zeros.part >= 0 && w.Tensors[st.zeros.part].DType == weights.I8 {
			st.zeros.packing = inOffset
		}
	default:
		return errors.New("lowtoggle does not read codes of this kind")
	}
	return nil
}

// layOutGPTQ determines the packing of codes and zero points of GPTQ and AWQ. Both store one row for each group.
func (w *Quantised) layOutGPTQ(st *storage) error {
	if w.layout != gptqLayout {
		return nil
	}
	st.scales.transposed, st.zeros.transposed = true, true
	st.codes, st.zeros.packing = alongColumn, alongRow
	switch {
	case w.Format.Method == methodAWQ:
		st.codes, st.zeros.packing = inAWQ, inAWQ
		if st.bits != 4 {
			return errors.New("AWQ codes can only be read with 4 bits")
		}
	case w.version == "":
		return errors.New("no config gives the version of GPTQ's layout, and the zero points of the two versions differ by 1: " + addConfig)
	case !slices.Contains([]int{2, 3, 4, 8}, st.bits):
		return fmt.Errorf("GPTQ codes of %d bits cannot be read", st.bits)
	case w.version == methodGPTQ:
		st.less = 1
	}
	return nil
}

// layOutScales determines the block that shares a scale.
func (w *Quantised) layOutScales(st *storage) error {
	scales := w.Tensors[st.scales.part]
	switch tail := scales.Shape; w.Format.Per {
	case "tensor":
		st.block = [2]int{st.n, st.k}
		st.scales.shared = st.experts > 1 && scales.Len() == 1
	case "channel":
		if st.block = [2]int{1, st.k}; len(tail) > 1 && tail[len(tail)-1] != 1 {
			st.block = [2]int{st.n, 1} // stored as inputs × outputs
		}
	default:
		st.block = w.Format.Block
	}
	if st.block[0] < 1 || st.block[1] < 1 {
		return errors.New("the size of the blocks is not known")
	}
	st.columns = ceil(st.k, st.block[1])
	if st.global.part >= 0 {
		st.divide = w.layout == packedLayout
		st.global.shared = st.experts > 1 && w.Tensors[st.global.part].Len() == 1
	}
	return nil
}

// checkSizes compares the tensors' types and sizes with the storage. Describe has checked most of them.
func (w *Quantised) checkSizes(st *storage) error {
	for i, t := range w.Tensors {
		bits, types := -1, []weights.DType{weights.I32, weights.I64}
		switch i {
		case 0:
			bits, types = st.codeBits(), nil
		case st.scales.part:
			bits, types = st.count(st.scales, st.scaleRows()*st.columns)*t.DType.Bits(), slices.Concat(floats, powers, fineTypes)
		case st.zeros.part:
			bits, types = st.zeroBits(), []weights.DType{weights.I32, weights.I8}
		case st.global.part:
			bits, types = st.count(st.global, 1)*t.DType.Bits(), floats
		case st.group:
			bits = st.k * t.DType.Bits()
		case st.shape:
			bits = len(w.Shape) * t.DType.Bits()
		}
		if bits >= 0 && (t.Len()*t.DType.Bits() != bits || types != nil && !slices.Contains(types, t.DType)) {
			return fmt.Errorf("%s %q is %s%v, which does not fit a weight of shape %v", t.Role, t.Name, t.DType, t.Shape, w.Shape)
		}
	}
	return nil
}

// count returns the number of elements of a tensor with size elements per expert.
func (st *storage) count(f field, size int) int {
	if f.shared {
		return size
	}
	return size * st.experts
}

// codeBits returns the size of the tensor of codes in bits.
func (st *storage) codeBits() int { return 8 * st.experts * st.codeRows() * st.rowBytes() }

// codeRows returns the number of rows of an expert's codes in the tensor.
func (st *storage) codeRows() int {
	switch st.codes {
	case alongColumn:
		return ceil(st.k*st.bits, 32)
	case inAWQ:
		return st.k
	}
	return st.n
}

// zeroBits returns the size of the tensor of zero points in bits.
func (st *storage) zeroBits() int {
	switch bits := st.scaleRows() * st.bits; st.zeros.packing {
	case alongRow, inAWQ:
		return st.columns * bits
	case alongColumn:
		return 32 * st.experts * st.columns * ceil(bits, 32)
	}
	return 8 * st.experts * st.columns * st.scaleRows()
}
