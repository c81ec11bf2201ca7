package forward_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// seen records the layers that share an input.
type seen []string

func (s *seen) Input(names []string, _ sgemm.Matrix) error {
	*s = append(*s, strings.Join(names, " "))
	return nil
}

// In every family, Decoder.Inputs has the inputs that an observer sees: the same groups of layers in the same order. An expert
// may get no token.
func TestInputsAreThoseOfThePass(t *testing.T) {
	for _, name := range synth.Names() {
		if !strings.HasSuffix(name, "-tiny") {
			continue
		}
		m := testmodel.Tiny(t, name, 0)
		d, err := forward.New(m, testmodel.LayoutOf(t, m))
		if err != nil {
			continue // an encoder, or what no forward pass computes
		}
		var got seen
		_, err = d.Run(t.Context(), forward.Stored(m), [][]int32{{1, 2, 3, 4, 5}}, &got)
		testmodel.OK(t, err)
		var want, layers []string
		for _, in := range d.Inputs() {
			var names []string
			for _, l := range in.Layers {
				names = append(names, l.Weight)
				layers = append(layers, l.Weight)
			}
			if together := strings.Join(names, " "); !in.Layers[0].Routed || slices.Contains(got, together) {
				want = append(want, together)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the pass has the inputs of %q, the description %q", name, got, want)
		}
		var all []string
		for _, l := range d.Layers() {
			all = append(all, l.Tensor)
		}
		if !slices.Equal(layers, all) {
			t.Errorf("%s: inputs of %q, layers %q", name, layers, all)
		}
	}
}
