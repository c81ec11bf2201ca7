package verify

import (
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Scale checks the pass scale: its steps hold an exponent for every label.
var Scale = &Check{Symmetry: func(s *plan.Step, _ *arch.Index) (sym Symmetry, err error) {
	sym.Exponents, err = plan.Data[[]int](s, "exponents")
	return sym, err
}}
