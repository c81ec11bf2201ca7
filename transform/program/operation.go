package program

import (
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Operation is the effect of one step on a tensor. A program knows a pass only through its operations. The zero value
// does nothing.
type Operation struct {
	// Apply rewrites blocks of the result, after the symmetries and the earlier operations. Blocks begin at a
	// multiple of Height rows. All blocks except the last have a multiple of Height rows. Height is a power of two; 0
	// means 1.
	Apply  Op
	Height int

	// Values replace the source's values [rows, columns], in the source's order, with signs and powers of two already
	// applied; nil: the source's values.
	Values []float32
	// Affine scales the layer's inputs and adds a constant, in real arithmetic; nil for neither.
	Affine *Affine
	// Extra is a tensor that only the result has; nil for none.
	Extra *Extra

	// Joint requests a joint choice of the layer's values (see [Program.Prepare]). Apply is then not called, and the
	// remaining fields describe the operation's contribution.
	Joint bool
	// Chooser returns the set of values to choose from, for n outputs and the scale of [rounding.Loss.Scale]. At most
	// one operation of a joint choice has a Chooser. Without one, the nearest stored value is chosen.
	Chooser func(n int, scale float64) (rounding.Chooser, error)
	// NotJoint is the reason why the operation cannot take part in a joint choice. It is empty if the operation can,
	// or if the general reason suffices.
	NotJoint string
	// Mask is true if values that Apply zeroes stay zero in a joint choice.
	Mask bool
	// Damp is the relative damping of the Hessian for error feedback, in which columns that are not yet rounded
	// absorb the errors of other columns; 0: no error feedback.
	Damp float64
	// ZeroInputs and ZeroOutputs are source positions whose weights become zero. Inputs are in the order of zeroing.
	ZeroInputs, ZeroOutputs []int

	// Codes are the operation's rules for a weight that is stored as codes; nil: the operation cannot change codes.
	// All other fields except Joint and Damp are then ignored.
	Codes *Recoding

	pass string // name of the pass, for messages
}

// Extra is a tensor [outputs] in F32 beside a weight. All its elements are Value.
type Extra struct {
	Suffix string // added to the weight's name
	Value  float32
}

// Affine is w·diag(Gamma) + Add, on rows in the result's order.
type Affine struct {
	Gamma []float32 // [inputs], in the result's order; nil for ones
	Add   float32
	// InputRows is true if inputs are rows (storage [in, out]).
	InputRows bool
}

// factor returns the factor of element [n, k] of the result.
func (a *Affine) factor(n, k int) float32 {
	switch {
	case a.Gamma == nil:
		return 1
	case a.InputRows:
		return a.Gamma[n]
	}
	return a.Gamma[k]
}

// apply computes in float64 and rounds to float32, then to the stored type. NaN and infinity do not change.
func (a *Affine) apply(b Block) {
	for i := range b.Rows {
		for k := range b.Cols {
			at := i*b.Cols + k
			bits := b.Format.Elem(b.Data, at)
			if !b.Format.Finite(bits) {
				continue
			}
			v := float64(float64(b.Format.Value(bits))*float64(a.factor(b.First+i, k))) + float64(a.Add)
			b.Format.SetElem(b.Data, at, b.Format.FromValue(float32(v)))
		}
	}
}
