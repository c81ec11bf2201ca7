package cost

import (
	"github.com/lowtoggle/lowtoggle/weights"
)

// Activity holds exact counts of a tensor's bits and toggles, with its elements in storage order.
type Activity struct {
	DType weights.DType `json:"dtype"`
	// Rows and Cols are the tensor's shape as a matrix in storage order, as in weights.Info.Matrix. A vector of n
	// elements has n rows and one column.
	Rows     int    `json:"rows"`
	Cols     int    `json:"cols"`
	Elements uint64 `json:"elements"`

	// RowToggles are the bits that differ between elements (n,k) and (n+1,k), summed over all RowPairs.
	RowToggles Fields `json:"toggles_rows"`
	// MemoryToggles are the bits that differ between neighbours in memory, summed over all MemoryPairs. The last
	// element of a row and the first of the next row are neighbours too.
	MemoryToggles Fields `json:"toggles_memory"`
	// Ones are the set bits (Hamming weight).
	Ones Fields `json:"hamming"`

	// Zeros counts elements of value zero, of either sign.
	Zeros uint64 `json:"zeros"`
	// ZeroRuns counts the maximal runs of zeros in memory order. A run may continue across row ends.
	ZeroRuns uint64 `json:"zero_runs"`
	// ZeroBorders counts the pairs (n,k), (n+1,k) in which exactly one element is zero.
	ZeroBorders uint64 `json:"zero_borders_rows"`

	NaN       uint64 `json:"nan"`
	Inf       uint64 `json:"inf"`
	Subnormal uint64 `json:"subnormal"`
}

// RowPairs returns the number of pairs of elements in neighbouring rows of the same column.
func (a Activity) RowPairs() uint64 { return a.Elements - min(a.Elements, uint64(a.Cols)) }

// MemoryPairs returns the number of pairs of neighbours in memory.
func (a Activity) MemoryPairs() uint64 { return a.Elements - min(a.Elements, 1) }

// Fields is a number of bits for each bit field of an element. Models give each field its own weight, because the
// fields drive different wires.
type Fields struct {
	Sign     uint64 `json:"sign"`
	Exponent uint64 `json:"exponent"`
	Mantissa uint64 `json:"mantissa"`
}

// Total returns the number of bits in all fields.
func (f Fields) Total() uint64 { return f.Sign + f.Exponent + f.Mantissa }

func (f *Fields) add(g Fields) {
	f.Sign += g.Sign
	f.Exponent += g.Exponent
	f.Mantissa += g.Mantissa
}

func (f Fields) times(n uint64) Fields {
	return Fields{n * f.Sign, n * f.Exponent, n * f.Mantissa}
}
