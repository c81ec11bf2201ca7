package search_test

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestLayersThatMatterLessGetCoarser: layers of low sensitivity get larger errors than layers of high sensitivity.
func TestLayersThatMatterLessGetCoarser(t *testing.T) {
	m := testmodel.Tiny(t, "llama-tiny", 0)
	in := testmodel.HessiansOf(t, m)
	matters := func(layer string) bool {
		return strings.Contains(layer, ".0.") == (strings.Contains(layer, "mlp") || strings.Contains(layer, "v_proj"))
	}
	e := evaluatorOf(t, m, in)
	e.sensitivity = func(layer string) float64 {
		if matters(layer) {
			return 1
		}
		return 1e-3
	}
	out := testmodel.Open(t, testplan.Applied(t, m, in, found(t, m, budgetOf(t, quick, 0.01, in, e))))
	testmodel.EachLinear(t, m, func(x weights.Tensor, outAxis int) {
		twin := strings.NewReplacer(".0.", ".1.", ".1.", ".0.").Replace(x.Name)
		if twin == x.Name || matters(x.Name) {
			return
		}
		little := testmodel.Lost(x, testmodel.TensorOf(t, out, x.Name), outAxis, in.HeldOut[x.Name])
		much := testmodel.Lost(testmodel.TensorOf(t, m, twin), testmodel.TensorOf(t, out, twin), outAxis, in.HeldOut[twin])
		if !(little > 10*much) {
			t.Errorf("%s has low sensitivity and loses %g, %s loses %g", x.Name, little, twin, much)
		}
	})
}
