package program_test

import (
	"bytes"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testdevice"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestDevice: a device rounds the layers whose outputs are rows, and gives the CPU's bytes, whatever the order, signs and scales
// of the layers' inputs.
func TestDevice(t *testing.T) {
	for _, c := range []struct {
		model, passes string
		rounds        bool // the device rounds; otherwise the CPU does
	}{
		{"llama-tiny", "round=4,compensate", true},
		{"llama-tiny", "reorder,signs,grid=6,compensate=0.02", true},
		{"llama-tiny", "sparsify=0.2/4x1,round=3,compensate", false},
		{"llama-tiny", "prune=0.3,trellis=0.05,compensate=0.01", true},
		{"llama-tiny", "trellis=0.05", false},
		{"gpt2-tiny", "trellis=0.05,compensate", false},
	} {
		m := testmodel.Open(t, testmodel.Folder(t, testmodel.Config(t, c.model, testplan.Narrow), synth.Options{Seed: 5}))
		h := testmodel.HessiansOf(t, m)
		want := testplan.Planned(t, m, h, c.passes)
		card := testdevice.New()
		got := testplan.Planned(t, m, testdevice.Hessians{Hessians: h, Rounder: card}, c.passes)
		if (card.Rounds > 0) != c.rounds {
			t.Errorf("%s, %s: the device rounded %d times", c.model, c.passes, card.Rounds)
		}
		for name, x := range want {
			if !bytes.Equal(x.Data, got[name].Data) {
				t.Errorf("%s, %s: the device gives other values of %s", c.model, c.passes, name)
			}
		}
	}
}

// TestDeviceKeepsNonFinite: values that are not finite keep their bits on a device, also in outputs that become zero.
func TestDeviceKeepsNonFinite(t *testing.T) {
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", testplan.Narrow), synth.Options{Seed: 5})
	h := testmodel.HessiansOf(t, testmodel.Open(t, dir))
	const name = "model.layers.0.mlp.up_proj.weight"
	infinite := uint32(testmodel.FormatOf(weights.BF16).ExpMask())
	testmodel.Edit(t, dir, func(info weights.Info, data []byte) {
		if info.Name == name {
			f := testmodel.FormatOf(info.DType)
			f.SetElem(data, 3, infinite)
			f.SetElem(data, 2*info.Shape[1]+5, infinite|1)
		}
	})
	m := testmodel.Open(t, dir)
	steps := []*plan.Step{
		pass.Prune.TensorStep(name, pass.Pruned{Inputs: []int{5, 1}, Outputs: []int{2, 7}}),
		pass.Compensate.TensorStep(name, pass.Damping{Damp: 0.01}),
		pass.Round.TensorStep(name, pass.Bits{Zeroed: 4}),
	}
	source := testmodel.TensorOf(t, m, name)
	all := testmodel.Tensors{name: source}
	want := testplan.Under(t, all, m, h, steps)[name]
	got := testplan.Under(t, all, m, testdevice.Hessians{Hessians: h, Rounder: testdevice.New()}, steps)[name]
	f, cols := testmodel.FormatOf(want.DType), want.Shape[1]
	for i := range want.Len() {
		v, w := f.Elem(source.Data, i), f.Elem(got.Data, i)
		if !f.Finite(v) && v != w || f.Finite(v) && (i/cols == 2 || i/cols == 7) && f.Value(w) != 0 {
			t.Errorf("element %d: %x becomes %x", i, v, w)
		}
	}
	if !bytes.Equal(got.Data[7*cols*2:], want.Data[7*cols*2:]) { // rows of finite values alone
		t.Error("the device gives other values than the CPU")
	}
}
