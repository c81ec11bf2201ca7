package runner

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Values are given in the stored type if it holds all of them, else in F32.
func TestEncoded(t *testing.T) {
	long := make([]float32, 1<<16+3)
	for i := range long {
		long[i] = float32(i%255) / 128
	}
	last := slices.Clone(long)
	last[len(last)-1] = 1 + 0x1p-12
	for name, c := range map[string]struct {
		dtype  weights.DType
		values []float32
		want   weights.DType
	}{
		"BF16":                 {weights.BF16, []float32{0, -1.5, 0x1p-130, 0x1.fep127}, weights.BF16},
		"FP16":                 {weights.F16, []float32{0, -1.5, 0x1p-24, 65504}, weights.F16},
		"FP32":                 {weights.F32, []float32{1.1, float32(math.Inf(1))}, weights.F32},
		"too many bits":        {weights.BF16, []float32{1, 1 + 0x1p-9}, weights.F32},
		"too large":            {weights.F16, []float32{65536}, weights.F32},
		"too small":            {weights.F16, []float32{0x1p-26}, weights.F32},
		"not a number":         {weights.BF16, []float32{float32(math.NaN())}, weights.F32},
		"many":                 {weights.BF16, long, weights.BF16},
		"many, the last finer": {weights.BF16, last, weights.F32},
	} {
		got := encoded(c.dtype, c.values)
		if got.dtype != c.want {
			t.Errorf("%s: given in %v, want %v", name, got.dtype, c.want)
			continue
		}
		back, err := decode(got.dtype, got.data, len(c.values))
		testmodel.OK(t, err)
		for i, v := range c.values {
			if math.Float32bits(back[i]) != math.Float32bits(v) {
				t.Errorf("%s: value %d is %g, want %g", name, i, back[i], v)
			}
		}
	}
}

// floatsOf are values by name.
type floatsOf map[string][]float32

func (g floatsOf) Tensor(_ context.Context, name string) ([]float32, error) {
	if name == "fails" {
		return nil, errors.New("it fails")
	}
	return g[name], nil
}

// own gives every tensor as two bytes of BF16.
type own struct{}

func (own) Tensor(context.Context, string) (weights.DType, []byte, error) {
	return weights.BF16, []byte{0, 0}, nil
}

// A layer that is left out does not change. A layer of another size and an error of the weights are errors.
func TestChangedLayers(t *testing.T) {
	c := &changed{own: own{}}
	layer := func(name string) decoder.Layer { return decoder.Layer{Tensor: name, Inputs: 2, Outputs: 1} }
	from := floatsOf{"w": {1, 2}, "long": {1, 2, 3}}
	if v, err := c.layer(t.Context(), from, layer("other")); v != nil || err != nil {
		t.Errorf("a layer that is left out: %v, error %v", v, err)
	}
	_, err := c.layer(t.Context(), from, layer("long"))
	testmodel.WantError(t, err, `tensor "long": 3 values were given, but its shape has 2`)
	_, err = c.layer(t.Context(), from, layer("fails"))
	testmodel.WantError(t, err, "it fails")
	v, err := c.layer(t.Context(), from, layer("w"))
	testmodel.OK(t, err)
	c.values = map[string]tensor{"w": *v}
	for name, want := range map[string]int{"w": 4, "other": 2} {
		if _, data, err := c.Tensor(t.Context(), name); err != nil || len(data) != want {
			t.Errorf("%s has %d bytes, want %d; error %v", name, len(data), want, err)
		}
	}
}

// The kernel's numbers of floats are in their order, and NaN stays one.
func TestUnordered(t *testing.T) {
	ordered := func(v float32) uint32 { // as in the kernel
		u := math.Float32bits(v)
		if u&(1<<31) != 0 {
			return ^u
		}
		return u | 1<<31
	}
	inf := float32(math.Inf(1))
	last := uint32(0)
	for _, v := range []float32{-inf, -3e38, -1, -0x1p-149, 0, 0x1p-149, 1, 2, 3e38, inf} {
		u := ordered(v)
		if u <= last || unordered(u) != v {
			t.Errorf("%g is encoded as %d, after %d; %d decodes to %g", v, u, last, u, unordered(u))
		}
		last = u
	}
	if v := unordered(ordered(float32(math.NaN()))); v == v || ordered(v) <= last {
		t.Errorf("NaN becomes %g", v)
	}
}

// As many inputs as there is room for are summed up at once, and at least one.
func TestRoomFor(t *testing.T) {
	inputs := make([]decoder.Input, 4)
	for i, width := range []int{10, 10, 30, 10} {
		inputs[i].Layers = []decoder.Linear{{Inputs: width}}
	}
	for room, want := range map[int64]int{1: 1, sumBytes(10): 1, 2*sumBytes(10) - 1: 1, 2 * sumBytes(10): 2,
		2*sumBytes(10) + sumBytes(30): 3, 1 << 40: 4} {
		got, err := new(Model).roomFor(inputs, room)
		if err != nil || len(got) != want {
			t.Errorf("room of %d bytes for %d inputs, want %d; error %v", room, len(got), want, err)
		}
	}
}
