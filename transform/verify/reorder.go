package verify

import (
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// Reorder checks the pass reorder: its steps hold a permutation of the labels.
var Reorder = &Check{Symmetry: func(s *plan.Step, _ *arch.Index) (sym Symmetry, err error) {
	sym.Order, err = plan.Data[[]int](s, "order")
	return sym, err
}}
