package transform

import (
	"slices"

	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// ServeScaled says how to serve a model for which [ScalesLayers] is true.
const ServeScaled = "the tensors between layers are multiplied by powers of two: serve the model in BF16 or FP32, not in FP16, " +
	"and not with FP8 or INT8 activations whose scales are fixed"

// ScalesLayers reports whether a plan multiplies most labels of an index by powers of two, as the pass scale does in
// workloads with decode. The model's activations are then multiplied too. FP16 can overflow, and activation scales
// that were calibrated for the source do not fit.
func ScalesLayers(p *plan.Plan) bool {
	return p != nil && slices.ContainsFunc(p.Steps, func(s *plan.Step) bool {
		if s.Pass != pass.Scale.Name {
			return false
		}
		exponents, err := plan.Data[[]int](s, "exponents")
		moved := 0
		for _, e := range exponents {
			if e != 0 {
				moved++
			}
		}
		return err == nil && 2*moved > len(exponents)
	})
}
