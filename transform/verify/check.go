package verify

import (
	"context"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Check decodes the claims of a pass's steps. It is written from the documentation of the pass and calls no code of
// the pass. An exact pass has Symmetry; all other passes have Claim. Both return an error for a step that they cannot
// decode.
type Check struct {
	// Symmetry decodes an exact step on an index. It need not check that the index allows the symmetry.
	Symmetry func(s *plan.Step, ix *arch.Index) (Symmetry, error)
	// Claim decodes a step on a tensor.
	Claim func(s *plan.Step) (*Claim, error)
}

// Symmetry is the claimed effect of an exact step on an index of n labels. Nil fields claim nothing.
type Symmetry struct {
	Order     []int // [n]: place i takes label Order[i]
	Flip      []int // labels multiplied by −1
	Exponents []int // [n]: label i is multiplied by 2^Exponents[i]
}

// Claim is the claimed effect of a step on the values of a tensor, after the symmetries. The zero value claims that
// no value changed.
type Claim struct {
	// Fold is the arithmetic of a compensated step; nil for none.
	Fold *Fold
	// NeedsRuntime is true if only a changed runtime can use the result.
	NeedsRuntime bool
	// Anywhere is true if values were chosen jointly for the layer's inputs, which verify does not know. Any value is
	// then allowed. The loss can be measured by running the model (verify --tokens).
	Anywhere bool
	// Zeros are the required zeros; nil for none.
	Zeros *Zeros
	// Within returns how far the step may move a value v. Earlier steps may have moved v by bound. output is the
	// number of the value's output. nil: the step moves no values.
	Within func(f weights.Format, output int, v, bound float64) float64
	// Codes checks the step's effect on a weight that is stored as codes; nil: no check.
	Codes func(ctx context.Context, m *Codes) error
	// Scales is true if the step may change the scales of a weight that is stored as codes.
	Scales bool
	// Holds checks a property of the result after the step; nil: no check.
	Holds func(ctx context.Context, t *Result) error
}

// Result is a tensor of the output, for [Claim.Holds].
type Result struct {
	Format     weights.Format
	Rows, Cols int
	// OutAxis is 1 if columns are the outputs, else 0.
	OutAxis int

	pair  *pair
	image image
}

// Row decodes row n of the result into dst. The length of dst must be Cols.
func (r *Result) Row(dst []float32, n int) { r.pair.decodeRow(dst, r.pair.b, n) }

// SourceRow returns the source position of row n.
func (r *Result) SourceRow(n int) int { return place(r.image.row, n) }

// SourceCol returns the source position of column k.
func (r *Result) SourceCol(k int) int { return place(r.image.col, k) }

// Spacing returns the distance between neighbouring values of a format at v; 1 for integers.
func Spacing(f weights.Format, v float64) float64 {
	return spacing(f, v)
}
