package operand

import (
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
)

// TestQuantisedLayersAreNoOperands: of a known family or not, only unquantised layers are taken. A tensor of codes may
// be named.
func TestQuantisedLayersAreNoOperands(t *testing.T) {
	for _, q := range testmodel.Quantisations {
		for _, fields := range []string{"", `{"model_type": "x", "architectures": ["X"]}`} {
			dir := testmodel.Quantised(t, q, testmodel.With{Fields: fields})
			set := NewSet(Options{})
			layers, skipped, err := set.Linear(testmodel.Open(t, dir))
			if err != nil || len(layers) != 1 || layers[0].Name != "lm_head.weight" || len(skipped) > 0 {
				t.Errorf("%s: %d layers, skipped %q (%v)", q.Name, len(layers), skipped, err)
			}
			testmodel.OK(t, set.Close())
		}
	}
	fp8 := testmodel.Quantisations[0]
	dir := testmodel.Quantised(t, fp8, testmodel.With{Head: true, Config: strings.Replace(fp8.Config, `["lm_head"]`, `[]`, 1)})
	set := NewSet(Options{Tokens: 16})
	defer set.Close()
	_, err := set.Products(t.Context(), MustParse(dir+":"))
	testmodel.WantError(t, err, "there are no linear layers in it", "15 weights in fp8, per tensor (compressed-tensors)", "use the unquantised checkpoint")
	products, err := set.Products(t.Context(), MustParse(dir+":lm_head.weight"))
	if err != nil || len(products) != 1 || products[0][0].W.Rows != 64 {
		t.Errorf("%v (%v)", products, err)
	}
}
