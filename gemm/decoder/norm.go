package decoder

import "github.com/lowtoggle/lowtoggle/weights/arch"

// Norm is a norm over channels: the names of its tensors. The zero value means no norm.
type Norm struct {
	Kind         arch.NormKind
	Weight, Bias string // empty: none
	Width        int
	Epsilon      float64 // added to the mean square
}

// Missing reports whether there is no norm.
func (n Norm) Missing() bool { return n.Width == 0 }
