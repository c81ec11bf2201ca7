package program

import (
	"github.com/lowtoggle/lowtoggle/transform/rounding"
)

// Operation is what one step does to a tensor: all that a program knows of the pass behind it. The zero value
// does nothing.
type Operation struct {
	// Apply rewrites blocks of the result, after the symmetries and the operations before it. Height is how
	// many rows it must see at a time: a power of two; 0 means 1.
	Apply  Op
	Height int

	// Values replace the source's values, by source position, with signs and powers of two already applied.
	Values []float32
	// Affine scales the layer's inputs and adds a constant, in real arithmetic.
	Affine *Affine
	// Extra names a tensor that the result has and the source has not; nil for none.
	Extra *Extra

	// Joint asks for the values of the whole layer to be chosen together (see [Program.Prepare]). Then Apply
	// is not called, and the remaining fields say what the operation contributes.
	Joint bool
	// Chooser returns the set of values to choose from, for n outputs and the scale of [rounding.Loss.Scale].
	// At most one operation of a joint choice has one. Without any, the nearest stored value is chosen.
	Chooser func(n int, scale float64) (rounding.Chooser, error)
	// NotJoint says why an operation with Apply alone cannot take part in a joint choice; empty where it can.
	NotJoint string
	// Mask is true where values that Apply zeroes stay zero in a joint choice.
	Mask bool
	// Damp hands the errors of columns on to those that are not yet rounded, with this damping of the
	// Hessian; 0: errors are not handed on.
	Damp float64
	// ZeroInputs and ZeroOutputs are positions of the source whose weights become zero, inputs in the order
	// in which their errors are handed on.
	ZeroInputs, ZeroOutputs []int

	pass string // whose operation it is, for messages
}

// Extra is a tensor [outputs] of F32 beside a weight, of which every element is Value.
type Extra struct {
	Suffix string // follows the weight's name
	Value  float32
}

// Affine is w·diag(Gamma) + Add on rows that are already in the result's order.
type Affine struct {
	Gamma []float32 // by place on the input axis; nil for ones
	Add   float32
	// InputRows is true where inputs are rows (storage [in, out]).
	InputRows bool
}

// factor of element [n, k] of the result.
func (a *Affine) factor(n, k int) float32 {
	switch {
	case a.Gamma == nil:
		return 1
	case a.InputRows:
		return a.Gamma[n]
	}
	return a.Gamma[k]
}

// apply computes in float64 and rounds to float32 and from there to the stored type. NaN and infinity stay.
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
