package quant

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// storage says how the parts of a weight hold its matrices.
type storage struct {
	book          Book
	experts, n, k int
	codes         packing
	bits          int // of a packed code
	block         [2]int
	columns       int // scales in a row of scales

	scales field
	zeros  field
	group  int // part with the group index; −1: none
	shape  int // part with the shape; −1: none
	global field
	divide bool
	v1     bool // GPTQ's first version, which stores zero points less 1
}

// packing is how a tensor packs codes or zero points.
type packing int

const (
	inBytes      packing = iota + 1 // one in a byte, as stored
	inOffset                        // one in a byte, as a signed integer
	inNibbles                       // two in a byte, the first in the low bits
	alongRow                        // 32 / bits in a word, along a row, the first in the low bits
	alongColumn                     // a stream of bits along a column, in words that lie side by side in rows
	awqRows                         // eight of 4 bits in a word, which are neighbours in the outputs, in AWQ's order
	zerosByGroup                    // zero points of GPTQ: [groups, outputs], a stream of bits along a row
)

// awqOrder is the output that each 4 bits of AWQ's words hold, the lowest first.
var awqOrder = [8]int{0, 2, 4, 6, 1, 3, 5, 7}

// field is a tensor of scales, zero points or a global scale.
type field struct {
	part       int // −1: none
	packing    packing
	transposed bool // stored with one row for each group
	shared     bool // one value for all experts
}

func (st *storage) scaleRows() int { return ceil(st.n, st.block[0]) }

// perWord is how many codes a 32-bit word holds.
func (st *storage) perWord() int { return 32 / st.bits }

// CanRead returns nil where [Quantised.Read] knows how the weight is stored, and otherwise why it does not.
func (w *Quantised) CanRead() error {
	_, err := w.storage()
	return err
}

// Experts is the number of matrices: the product of all dimensions of Shape but the last two.
func (w *Quantised) Experts() int {
	n := 1
	for _, d := range w.Shape[:max(0, len(w.Shape)-2)] {
		n *= d
	}
	return n
}

// storage finds how a weight is stored.
func (w *Quantised) storage() (*storage, error) {
	if w.Shape == nil || w.Format.Per == "" {
		return nil, fmt.Errorf("weight %q: values in %s are not read", w.Name, w.Format)
	}
	_, n, k, _ := matrix(w.Shape)
	st := &storage{experts: w.Experts(), n: n, k: k, scales: field{part: w.index(Scales)}, zeros: field{part: w.index(ZeroPoints)},
		group: w.index(GroupIndex), shape: w.index(Shape), global: field{part: w.index(GlobalScale)}}
	err := w.layOut(st)
	if err != nil {
		return nil, fmt.Errorf("weight %q: %w", w.Name, err)
	}
	return st, nil
}

// index finds the first part of a role; −1 if there is none.
func (w *Quantised) index(r Role) int {
	return slices.IndexFunc(w.Tensors, func(t Stored) bool { return t.Role == r })
}

func (w *Quantised) layOut(st *storage) error {
	scales := w.Tensors[st.scales.part]
	st.book = Book{Codes: w.Format.Codes, ScaleType: scales.DType}
	if scales.DType == weights.U8 {
		st.book.ScaleType = weights.F8E8M0
	}
	switch w.layout {
	case scaledLayout, packedLayout, blocksLayout:
	default:
		return errors.New("values of this layout are not read")
	}
	if err := w.layOutCodes(st); err != nil {
		return err
	}
	return w.layOutScales(st)
}

// layOutCodes finds how codes and zero points are packed, and what they stand for.
func (w *Quantised) layOutCodes(st *storage) error {
	codes := w.Tensors[0]
	switch kind := w.Format.Codes; {
	case kind == "fp8":
		st.codes, st.bits, st.book.Values = inBytes, 8, fp8Values[codes.DType]
		if st.zeros.part >= 0 {
			return errors.New("zero points of FP8 codes are not read")
		}
	case kind == "mxfp4" || kind == "nvfp4":
		st.codes, st.bits, st.book.Values = inNibbles, 4, fp4Values
	case strings.HasPrefix(kind, "int"):
		st.bits, _ = strconv.Atoi(kind[len("int"):])
		if st.bits < 1 || st.bits > 8 {
			return fmt.Errorf("codes of %d bits are not read", st.bits)
		}
		st.book.Values, st.book.Zero = intValues[:1<<st.bits], 1<<(st.bits-1)
		if st.codes = alongRow; codes.DType == weights.I8 {
			st.codes = inOffset
		}
		if zeros := st.zeros.part; zeros >= 0 {
			if st.zeros.packing = alongColumn; w.Tensors[zeros].DType == weights.I8 {
				st.zeros.packing = inOffset
			}
		}
	default:
		return fmt.Errorf("%s codes are not read", kind)
	}
	if st.codes == alongRow && 32%st.bits != 0 {
		return fmt.Errorf("codes of %d bits are not read", st.bits)
	}
	return nil
}

// layOutScales finds the block for which a scale counts.
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
		return errors.New("the size of its blocks is not known")
	}
	st.columns = ceil(st.k, st.block[1])
	if st.global.part >= 0 {
		st.divide = w.layout == packedLayout
		st.global.shared = st.experts > 1 && w.Tensors[st.global.part].Len() == 1
	}
	if want := st.scaleRows() * st.columns; !st.scales.shared && scales.Len() != want*st.experts {
		return fmt.Errorf("%d scales do not fit %d blocks", scales.Len(), want*st.experts)
	}
	return nil
}
