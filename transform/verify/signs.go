package verify

import (
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Signs checks the pass signs: its steps hold a list of labels to flip.
var Signs = &Check{Symmetry: func(s *plan.Step, _ *arch.Index) (sym Symmetry, err error) {
	sym.Flip, err = plan.Data[[]int](s, "flip")
	return sym, err
}}
