package verify

import (
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Shift checks the pass shift: a constant is added, or a norm is folded into the layers that read it, with one rounding.
var Shift = &Check{Claim: func(s *plan.Step) (*Claim, error) {
	f, err := plan.Data[Fold](s)
	return &Claim{Fold: &f, NeedsRuntime: f.Epilogue, Within: func(f weights.Format, _ int, v, _ float64) float64 { return spacing(f, v) }}, err
}}
