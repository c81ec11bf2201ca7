package quantise_test

import (
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quantise"
)

// TestFit: Fit chooses the group size that fits most layers, and leaves out layers that no group size fits. The error advises
// a size that fits all layers.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		format     string
		inputs     []int
		want, fail string
		left       []string
	}{
		{"int4", []int{256, 1024}, "int4", "", nil},
		{"int4", []int{256, 192}, "int4=64", "", nil},
		{"int4", []int{48, 100}, "int4=16", "", []string{"b.1.weight"}},
		{"int4", []int{256, 512, 100}, "int4", "", []string{"b.2.weight"}},
		{"int4=128", []int{256, 192}, "int4=128", "", []string{"b.1.weight"}},
		{"int4=128", []int{64, 96}, "", "b.0.weight has 64 inputs, which is not a multiple of the group size 128 (format int4): choose a group size that all layers fit, as in int4=32", nil},
		{"int4", []int{36}, "", "choose a format without groups, such as fp8 or int8", nil},
		{"mxfp4", []int{48, 64}, "mxfp4", "", []string{"b.0.weight"}},
		{"nvfp4", []int{40}, "", "not a multiple of the group size 16 (format nvfp4): choose a format without groups", nil},
		{"gptq", []int{256, 192, 96}, "", "b.1.weight has 192 inputs, which is not a multiple of the group size 128 (format gptq): choose a group size that all layers fit, as in gptq=32", nil},
		{"fp8-block", []int{100}, "fp8-block", "", nil},
	} {
		f, err := quantise.Parse(c.format)
		testmodel.OK(t, err)
		targets := &quantise.Targets{Weights: map[string]bool{}}
		var infos []weights.Info
		for i, k := range c.inputs {
			infos = append(infos, weights.Info{Name: "b." + string(rune('0'+i)) + ".weight", DType: weights.BF16, Shape: []int{64, k}})
			targets.Weights[infos[i].Name] = true
		}
		got, err := targets.Fit(f, infos)
		if c.fail != "" {
			testmodel.WantError(t, err, c.fail)
			continue
		}
		testmodel.OK(t, err)
		if got.String() != c.want || !slices.Equal(targets.Left, c.left) || len(targets.Weights)+len(c.left) != len(c.inputs) || len(targets.Ignore) != len(c.left) {
			t.Errorf("%s, inputs %v: %s without %v, ignored %v, want %s without %v", c.format, c.inputs, got, targets.Left, targets.Ignore, c.want, c.left)
		}
		if again, err := quantise.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s: %s is read as %v, %v", c.format, got, again, err)
		}
	}
}
