package verify

import (
	"context"

	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Check is what verify knows of a pass: what its steps claim. It is written a second time, from the documentation of
// the pass, and calls no code of it. An exact pass has a Symmetry, all others a Claim.
type Check struct {
	// Symmetry decodes an exact step on an index. It need not hold the symmetry against what the index allows.
	Symmetry func(s *plan.Step, ix *arch.Index) (Symmetry, error)
	// Claim decodes a step on a tensor.
	Claim func(s *plan.Step) (*Claim, error)
}

// Symmetry is what an exact step claims of an index. Nil parts claim nothing.
type Symmetry struct {
	Order     []int // place i takes label Order[i]
	Flip      []int // labels that are multiplied by −1
	Exponents []int // by label: multiplied by 2^Exponents
}

// Claim is what a step claims to have done to the values of a tensor, which stand where the symmetries put them.
// A claim that sets nothing claims that no value changed.
type Claim struct {
	// Fold is the arithmetic of a compensated step; nil for none.
	Fold *Fold
	// NeedsRuntime is true where a runtime must be changed to use the result.
	NeedsRuntime bool
	// Anywhere is true where values were chosen jointly, by the layer's inputs, which are not known here. They
	// may be anywhere: what they lose is told by running the model (verify --tokens).
	Anywhere bool
	// Zeros are the zeros that must be there; nil for none.
	Zeros *Zeros
	// Within is how far a value may be from v, beyond bound, by which earlier steps may have moved it; nil:
	// no further. The output is the row or column that the value belongs to.
	Within func(f weights.Format, output int, v, bound float64) float64
	// Holds checks a property that the step leaves behind in the result; nil for none.
	Holds func(ctx context.Context, t *Result) error
}

// Result is a tensor of the output, for [Claim.Holds].
type Result struct {
	Format     weights.Format
	Rows, Cols int
	// OutAxis is 1 where columns are the outputs, else 0.
	OutAxis int

	pair  *pair
	image image
}

// Row decodes row n of the result into dst, of length Cols.
func (r *Result) Row(dst []float32, n int) { r.pair.decodeRow(dst, r.pair.b, n) }

// SourceRow and SourceCol are the positions in the source of a row and of a column.
func (r *Result) SourceRow(n int) int { return place(r.image.row, n) }
func (r *Result) SourceCol(k int) int { return place(r.image.col, k) }

// Spacing is the distance between values of a format at v.
func Spacing(f weights.Format, v float64) float64 {
	return spacing(f, v)
}
